"""Tokens read in few kernels are those that the model's own forward pass reads."""

import pytest
import torch
from launches import Launches
from simulated_graph import simulate
from small_models import EOS, PAD, left_padded_prompts, small_model, small_tokenizer
from torch import nn
from torch.nn import functional

from rlcourse.planning.timing import FUSED_KERNELS, FUSED_KERNELS_OUTSIDE
from rlcourse.policy import Policy, sample_completions, static_decoding
from rlcourse.policy.fused import can_be_fused
from rlcourse.policy.lora import add_adapters

BIASED = {"attention_bias": True, "mlp_bias": True}
KINDS = [
    *(("llama", {}), ("llama", BIASED), ("llama", {"num_key_value_heads": 4})),
    *(("mistral", {}), ("qwen2", {}), ("qwen2", {"tie_word_embeddings": True}), ("qwen3", {})),
    ("llama", {"rope_parameters": {"rope_type": "linear", "factor": 2.0, "rope_theta": 1e4}}),
]


def draw(model, prompts, seed=0, **options):
    settings = {"eos_ids": (EOS,), "pad_id": PAD, "max_tokens": 24, "group_size": 4}
    settings |= {"static_cache": True, "fused": True}
    generator = torch.Generator().manual_seed(seed)
    rollouts = sample_completions(model, *prompts, generator=generator, **settings | options)
    return rollouts, generator


def with_biases(model):
    """Biases and norms are 0 and 1 at first, which would hide that they are left out."""
    generator = torch.Generator().manual_seed(1)
    for name, parameter in model.named_parameters():
        if name.endswith("bias") or "norm" in name:
            parameter.data += torch.randn(parameter.shape, generator=generator).to(parameter) / 4
    return model


@pytest.fixture(params=["step by step", "graph"])
def repeated(request, monkeypatch):
    if request.param == "graph":
        monkeypatch.setattr(static_decoding, "GRAPHS_ON", ("cpu",))
        simulate(monkeypatch)
    return request.param == "graph"


@pytest.mark.parametrize("kind, changes", KINDS)
def test_the_same_draws_as_the_model_itself(kind, changes, repeated):
    model = with_biases(small_model(kind, dtype=torch.float64, **changes))
    assert can_be_fused(model)
    prompts = left_padded_prompts()
    plain, _ = draw(model, prompts, fused=False, static_cache=False, eos_ids=())
    fused, _ = draw(model, prompts, eos_ids=())
    assert torch.equal(fused.tokens, plain.tokens)
    # The model's norms round to float32, whatever comes in.
    torch.testing.assert_close(fused.old_logprobs, plain.old_logprobs, rtol=0, atol=1e-5)


def test_under_autocast_log_probs_are_as_near_to_the_trainers():
    """Those of the model's own pass, scored in the same precision, differ as much."""
    policy = Policy(with_biases(small_model("qwen2", initializer_range=0.1)), small_tokenizer())
    prompts, gaps = left_padded_prompts(), {}
    for fused in (False, True):
        with torch.autocast("cpu", torch.bfloat16):
            rollouts, _ = draw(policy.model, prompts, fused=fused, group_size=32)
            with torch.no_grad():
                scored = policy.logprobs(rollouts)
        gaps[fused] = (scored - rollouts.old_logprobs)[rollouts.mask].abs().mean()
    assert gaps[True] < 2 * gaps[False] + 1e-3
    assert gaps[True] < 0.02


def test_rows_leave_by_halves(repeated):
    model = small_model("llama", dtype=torch.float64, initializer_range=0.05)
    rollouts, _ = draw(model, left_padded_prompts(), group_size=16, max_tokens=100)
    scored = Policy(model, small_tokenizer()).logprobs(rollouts)
    assert len(set(rollouts.mask.sum(1).tolist())) > 10
    torch.testing.assert_close(rollouts.old_logprobs, scored, rtol=0, atol=1e-5)


class Changed(nn.Linear):
    pass


def changed_layer(model):
    old = model.model.layers[1].mlp.up_proj
    model.model.layers[1].mlp.up_proj = Changed(old.in_features, old.out_features, bias=False)


def hooked(model):
    model.model.layers[0].register_forward_hook(lambda module, given, found: found)


def adapted(model):
    add_adapters(Policy(model, small_tokenizer()), rank=2, alpha=4)


@pytest.mark.parametrize("change", [changed_layer, hooked, adapted])
def test_a_model_that_was_changed_is_not_fused(change):
    model = small_model("llama")
    assert can_be_fused(model)
    change(model)
    assert not can_be_fused(model)
    rollouts, _ = draw(model, left_padded_prompts())
    scored = Policy(model, small_tokenizer()).logprobs(rollouts)
    torch.testing.assert_close(rollouts.old_logprobs, scored, rtol=0, atol=1e-3)


@pytest.mark.parametrize(
    "kind, changes",
    [
        ("gpt2", {}),
        ("llama", {"hidden_act": "gelu"}),
        ("llama", {"rope_parameters": {"rope_type": "dynamic", "factor": 2.0, "rope_theta": 1e4}}),
    ],
)
def test_other_models_are_not_fused(kind, changes):
    assert not can_be_fused(small_model(kind, **changes))


# how many kernels


def launches(layers, monkeypatch):
    """Of one token a row, draw included: without fusing, and with it."""
    counting, step, found = Launches(), static_decoding.StaticDecoder._step, []

    def counted(self):
        counting.n = 0
        with counting:
            step(self)

    # RMSNorm is one kernel of a GPU's in torch 2.9 and later. Attention's result is copied there,
    # because the kernel leaves the heads in another order than the next product reads them in.
    attention = functional.scaled_dot_product_attention
    with monkeypatch.context() as patch:
        patch.setattr(functional, "rms_norm", counting.as_one(functional.rms_norm))
        patch.setattr(
            functional,
            "scaled_dot_product_attention",
            lambda *args, **options: attention(*args, **options).clone(),
        )
        patch.setattr(static_decoding.StaticDecoder, "_step", counted)
        model = small_model("qwen2", num_hidden_layers=layers)
        with torch.autocast("cpu", torch.bfloat16):
            for fused in (False, True):
                draw(model, left_padded_prompts(), max_tokens=6, eos_ids=(), fused=fused)
                found.append(counting.n)
    return found


def test_half_a_billion_weights_take_fewer_than_500_kernels_a_token(monkeypatch):
    two, four = launches(2, monkeypatch), launches(4, monkeypatch)
    plain, fused = ((b - a) / 2 for a, b in zip(two, four, strict=True))
    assert fused == FUSED_KERNELS and plain > 2 * FUSED_KERNELS
    assert two[1] - 2 * fused == FUSED_KERNELS_OUTSIDE
    assert 24 * fused + FUSED_KERNELS_OUTSIDE <= 500
