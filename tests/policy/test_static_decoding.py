"""The decoder of fixed shapes draws what the growing one draws, in a graph and without."""

import pytest
import torch
from simulated_graph import SimulatedGraph, simulate
from small_models import ARCHITECTURES, EOS, PAD, left_padded_prompts, small_model, small_tokenizer

from rlcourse.algorithms import sample_tokens
from rlcourse.errors import UserError
from rlcourse.machine import is_out_of_memory
from rlcourse.policy import Policy, sample_completions, sampler, static_decoding
from rlcourse.policy.static_decoding import can_decode_statically


@pytest.fixture(params=["step by step", "graph"])
def repeated(request, monkeypatch):
    """Whether tokens are written by repeating a (simulated) graph."""
    if request.param == "graph":
        monkeypatch.setattr(static_decoding, "GRAPHS_ON", ("cpu",))
        simulate(monkeypatch)
    monkeypatch.setattr(SimulatedGraph, "replays", 0)
    return request.param == "graph"


def draw(model, prompts, static_cache=True, seed=0, **options):
    settings = {"eos_ids": (EOS,), "pad_id": PAD, "max_tokens": 24, "group_size": 4}
    settings["generator"] = torch.Generator().manual_seed(seed)
    return sample_completions(model, *prompts, static_cache=static_cache, **settings | options)


@pytest.mark.parametrize(
    "architecture, suits",
    [("gpt2", 1), ("llama", 1), ("mistral", 1), ("qwen2", 1), ("qwen3", 1), ("mistral_sliding", 0)],
)
def test_models_with_plain_attention_decode_statically(architecture, suits):
    model = small_model(architecture)
    assert can_decode_statically(model) == suits
    model.config._attn_implementation = "flash_attention_2"
    assert not can_decode_statically(model)


@pytest.mark.parametrize("architecture", ARCHITECTURES)
@pytest.mark.parametrize("options", [{}, {"top_k": 7, "temperature": 0.8}, {"top_p": 0.9}])
def test_the_same_draws_as_with_a_growing_cache(architecture, options, repeated):
    model, prompts = small_model(architecture, dtype=torch.float64), left_padded_prompts()
    growing = draw(model, prompts, static_cache=False, eos_ids=(), **options)
    static = draw(model, prompts, eos_ids=(), **options)
    assert torch.equal(static.tokens, growing.tokens)
    torch.testing.assert_close(static.old_logprobs, growing.old_logprobs, rtol=0, atol=1e-12)
    # The prompt's token and one ordinary step come before the graph.
    uses_graph = repeated and architecture != "mistral_sliding"
    assert SimulatedGraph.replays == (24 - 2 if uses_graph else 0)


def test_a_function_of_ones_own_may_ask_the_host(repeated):
    def slow_but_right(logits, **options):
        assert torch.isfinite(logits).all().item()  # which no graph can hold
        return sample_tokens(logits, **options)

    model, prompts = small_model("qwen2", dtype=torch.float64), left_padded_prompts()
    own = draw(model, prompts, sample_tokens=slow_but_right, eos_ids=())
    assert SimulatedGraph.replays == (24 - 2 if repeated else 0)
    assert torch.equal(own.tokens, draw(model, prompts, eos_ids=()).tokens)


def test_under_autocast_log_probs_are_those_of_the_growing_cache(repeated):
    model, prompts = small_model("qwen2", initializer_range=0.1), left_padded_prompts()
    with torch.autocast("cpu", torch.bfloat16):
        growing = draw(model, prompts, static_cache=False, temperature=0, eos_ids=(), max_tokens=6)
        static = draw(model, prompts, temperature=0, eos_ids=(), max_tokens=6)
    same = (static.tokens == growing.tokens).long().cumprod(1).bool()
    # bfloat16 keeps eight bits, and the two attend in another order: log-probs of about 3.5 nats
    # are then within some 2^-8 of each other, and two likeliest tokens may change places.
    error = (static.old_logprobs - growing.old_logprobs)[same].abs()
    assert same[:, 0].all() and error.numel() > 16
    assert error.max() < 0.08


@pytest.mark.parametrize("autocast", [False, True])
def test_scores_of_large_keys_are_not_rounded(autocast):
    """Qwen2.5's keys reach 175: scores of several hundred, of which bfloat16 keeps eight bits."""
    generator = torch.Generator().manual_seed(0)
    query, key, value = (
        torch.randn(2, heads, places, 64, generator=generator).bfloat16()
        for heads, places in ((4, 1), (2, 40), (2, 40))
    )
    key = (key + 100 * torch.randn(1, 2, 1, 64, generator=generator)).bfloat16()
    repeated = [states.double().repeat_interleave(2, dim=1) for states in (key, value)]
    exact = torch.nn.functional.scaled_dot_product_attention(query.double(), *repeated)
    mask = torch.zeros(2, 1, 1, 40)
    with torch.autocast("cpu", torch.bfloat16, enabled=autocast):
        found, _ = static_decoding.static_attention(None, query, key, value, mask)
    # Rounding the weights and the result to eight bits explains 0.006, over 20 seeds. With rounded
    # scores the error was between 0.06 and 0.45, and 0.17 on this seed.
    torch.testing.assert_close(found.double(), exact.transpose(1, 2), rtol=0, atol=0.03)


def test_what_cannot_be_captured_is_decoded_without_a_graph(monkeypatch, capsys):
    def fails(*unused):
        raise RuntimeError("operation not permitted\nwhen stream is capturing")

    monkeypatch.setattr(static_decoding, "GRAPHS_ON", ("cpu",))
    monkeypatch.setattr(torch.cuda, "CUDAGraph", SimulatedGraph)
    monkeypatch.setattr(torch.cuda, "graph", fails)
    model, prompts = small_model("llama"), left_padded_prompts()
    without = draw(model, prompts)
    assert capsys.readouterr().err.count("without a CUDA graph (operation not permitted)") == 1
    monkeypatch.undo()
    assert torch.equal(without.tokens, draw(model, prompts).tokens)


def without_memory(*unused):
    raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate")


def test_a_capture_without_memory_is_no_capture_that_failed(monkeypatch, capsys):
    """Whoever asked may ask for fewer rows."""
    monkeypatch.setattr(static_decoding, "GRAPHS_ON", ("cpu",))
    monkeypatch.setattr(torch.cuda, "CUDAGraph", SimulatedGraph)
    monkeypatch.setattr(torch.cuda, "graph", without_memory)
    with pytest.raises(static_decoding.NoMemoryForGraph, match="out of memory") as error:
        draw(small_model("llama"), left_padded_prompts())
    assert is_out_of_memory(error.value)
    assert "CUDA graph" not in capsys.readouterr().err


def test_attention_is_restored_even_after_an_error():
    model, steps = small_model("llama"), []

    def fails_later(logits, **_):
        steps.append(model.config._attn_implementation)
        return logits.argmax(-1) if len(steps) < 3 else logits.no_such_method()

    with pytest.raises(AttributeError):
        draw(model, left_padded_prompts(), eos_ids=(), sample_tokens=fails_later)
    assert steps[-1] == "static_cache" and model.config._attn_implementation == "sdpa"


@pytest.mark.parametrize("static_cache", [True, False])
@pytest.mark.parametrize("wrong", [-1, 40])
def test_draws_that_are_no_tokens_end_with_a_sentence(static_cache, wrong):
    def off_by_one(logits, **_):
        return torch.full(logits.shape[:1], wrong)

    options = {"static_cache": static_cache, "sample_tokens": off_by_one}
    with pytest.raises(UserError, match="numbers that are not token ids"):
        draw(small_model("llama"), left_padded_prompts(), **options)


def test_a_policy_says_how_it_decodes(monkeypatch):
    policy = Policy(small_model("llama"), small_tokenizer())
    seen = []
    monkeypatch.setattr(sampler, "can_decode_statically", lambda model: seen.append(model))
    policy.sample(["w3 w4"], max_tokens=2)
    assert not seen  # on a CPU, unless it is asked for
    policy.static_cache = True
    policy.clone().sample(["w3 w4"], max_tokens=2)
    assert len(seen) == 1
