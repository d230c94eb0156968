"""Tokens read in few kernels are those that the model's own forward pass reads."""

import pytest
import torch
from launches import Launches
from simulated_graph import SimulatedGraph, simulate
from small_models import EOS, PAD, left_padded_prompts, small_model, small_tokenizer
from torch import nn
from torch.nn import functional

from rlcourse.planning.timing import FUSED_KERNELS, FUSED_KERNELS_OUTSIDE
from rlcourse.policy import Policy, sample_completions, static_decoding
from rlcourse.policy.fused import can_be_fused
from rlcourse.policy.kept_graphs import KeptGraphs
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


def test_in_float32_only_rounding_differs():
    model, prompts = with_biases(small_model("qwen2")), left_padded_prompts()
    plain, _ = draw(model, prompts, fused=False, eos_ids=())
    fused, _ = draw(model, prompts, eos_ids=())
    assert torch.equal(fused.tokens, plain.tokens)
    torch.testing.assert_close(fused.old_logprobs, plain.old_logprobs, rtol=0, atol=1e-3)


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


# kept graphs


def trained(model):
    """Move the weights, as an optimizer does: in place."""
    generator = torch.Generator().manual_seed(2)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter += torch.randn(parameter.shape, generator=generator).to(parameter) / 10


@pytest.mark.parametrize("autocast", [False, True])
def test_kept_graphs_draw_what_new_ones_would(autocast, monkeypatch):
    monkeypatch.setattr(static_decoding, "GRAPHS_ON", ("cpu",))
    simulate(monkeypatch)
    captured, capture = [], static_decoding.captured

    def noted(advance, generator):
        captured.append(len(advance.__self__.row))
        return capture(advance, generator)

    monkeypatch.setattr(static_decoding, "captured", noted)
    # In bfloat16 a kernel rounds otherwise where there are more places.
    monkeypatch.setattr(static_decoding, "PLACES", {False: 64, True: 64})
    model, kept = small_model("qwen2", initializer_range=0.1), KeptGraphs()
    made: list[int] = []  # how many rows the kept graphs have
    # Prompts of other lengths, and in the third batch a longer one, have other places.
    for step, lengths in enumerate([(3, 9, 1, 6), (5, 2, 2, 4), (12, 1, 7, 3)]):
        prompts = left_padded_prompts(lengths, seed=step)
        with torch.autocast("cpu", torch.bfloat16, enabled=autocast):
            fresh, one = draw(model, prompts, seed=step, group_size=16, max_tokens=40)
            anew = captured[:]
            captured.clear()
            again, other = draw(model, prompts, seed=step, group_size=16, max_tokens=40, kept=kept)
            made += captured
        assert torch.equal(fresh.tokens, again.tokens)
        torch.testing.assert_close(fresh.old_logprobs, again.old_logprobs, rtol=0, atol=1e-5)
        assert torch.equal(one.get_state(), other.get_state())
        assert set(anew) <= set(made) and len(made) == len(set(made))
        captured.clear()
        trained(model)


def test_rollouts_do_not_change_with_the_next_batch():
    model, kept, prompts = small_model("llama"), KeptGraphs(), left_padded_prompts()
    first, _ = draw(model, prompts, kept=kept)
    tokens, logprobs = first.tokens.clone(), first.old_logprobs.clone()
    second, _ = draw(model, prompts, seed=1, kept=kept)
    assert not torch.equal(second.tokens, tokens)
    assert torch.equal(first.tokens, tokens) and torch.equal(first.old_logprobs, logprobs)


@pytest.mark.parametrize("change", [{"max_tokens": 20}, {"temperature": 0.5}, {"group_size": 2}])
def test_another_kind_of_batch_begins_anew(change):
    model, kept, prompts = small_model("llama"), KeptGraphs(), left_padded_prompts()
    draw(model, prompts, kept=kept)
    decoder = kept.decoder
    draw(model, prompts, kept=kept)
    assert kept.decoder is decoder
    found, _ = draw(model, prompts, kept=kept, **change)
    assert kept.decoder is not decoder
    assert torch.equal(found.tokens, draw(model, prompts, **change)[0].tokens)


def test_weights_that_moved_are_found():
    model, kept, prompts = small_model("llama"), KeptGraphs(), left_padded_prompts()
    draw(model, prompts, kept=kept)
    model.model.norm.weight = nn.Parameter(3 * model.model.norm.weight.detach())
    found, _ = draw(model, prompts, kept=kept)
    assert torch.equal(found.tokens, draw(model, prompts)[0].tokens)


def test_a_longer_prompt_than_the_buffers_hold_gets_new_ones():
    model, kept = small_model("llama"), KeptGraphs()
    for length in (4, 70):
        prompts = left_padded_prompts((3, length))
        found, _ = draw(model, prompts, kept=kept)
        assert torch.equal(found.tokens, draw(model, prompts)[0].tokens)


def test_an_error_leaves_nothing_behind():
    model, kept, prompts = small_model("llama"), KeptGraphs(), left_padded_prompts()

    def fails(logits, **_):
        raise ValueError("unfinished")

    draw(model, prompts, kept=kept)
    with pytest.raises(ValueError, match="unfinished"):
        draw(model, prompts, kept=kept, sample_tokens=fails)
    assert kept.decoder is None


def test_a_function_of_ones_own_draws_from_its_own_generator(monkeypatch):
    from rlcourse.algorithms import sample_tokens

    monkeypatch.setattr(static_decoding, "GRAPHS_ON", ("cpu",))
    simulate(monkeypatch)
    model, kept, prompts = small_model("llama"), KeptGraphs(), left_padded_prompts()
    replays = SimulatedGraph.replays
    for seed in (0, 1):

        def own(logits, **options):
            assert torch.isfinite(logits).all().item()  # which no graph can hold
            return sample_tokens(logits, **options)

        found, generator = draw(model, prompts, seed, kept=kept, sample_tokens=own, group_size=16)
        same, other = draw(model, prompts, seed, group_size=16)
        assert torch.equal(found.tokens, same.tokens)
        assert torch.equal(generator.get_state(), other.get_state())
    assert SimulatedGraph.replays > replays


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
