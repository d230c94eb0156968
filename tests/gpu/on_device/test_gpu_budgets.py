"""How often the host waits for the GPU, and what it asks of it: a hidden ``.item()`` fails here.

Counts are the same on every machine. Each budget is what was counted with the libraries of
requirements.lock: more is to be explained, less to be noted here.
"""

import pretended_gpu
import pytest
import torch
from echo import echo_policy, echo_recipe, echo_task
from simulated_graph import SimulatedGraph
from small_models import left_padded_prompts, small_model

from rlcourse.policy import sample_completions, static_decoding
from rlcourse.training.learners import learner_for
from rlcourse.training.recipes.methods import METHODS


def counts(tokens, static_cache, prompts=None, **options):
    """Waits and operators of drawing `tokens` tokens in each of eight rows."""
    model = small_model("qwen2").cuda()
    prompt_tokens, mask = (x.cuda() for x in left_padded_prompts(prompts or (3, 9)))
    generator = torch.Generator("cuda").manual_seed(0)
    settings = {"group_size": 4, "max_tokens": tokens, "eos_ids": (), "generator": generator}
    settings |= {"static_cache": static_cache} | options
    with pretended_gpu.counted() as found:
        rollouts = sample_completions(model, prompt_tokens, mask, **settings)
    found.tokens = rollouts.tokens
    return found


def per_token(what, *arguments, **options):
    """Differences between 65 tokens and 33: what the prompt costs is in both."""
    long, short = (counts(n, *arguments, **options) for n in (65, 33))
    value = {"waits": lambda found: sum(found.waits.values()), "operators": lambda f: f.operators}
    return (value[what](long) - value[what](short)) / 32


@pytest.mark.parametrize("options", [{}, {"top_k": 5}, {"temperature": 0.0}, {"top_p": 0.9}])
def test_one_wait_in_eight_tokens(options):
    assert per_token("waits", static_cache=True, **options) == 1 / 8


def test_operators_of_a_token(monkeypatch):
    monkeypatch.setattr(static_decoding, "GRAPHS_ON", ())
    # Of which 100 are the two layers', and the draw's about 15.
    assert per_token("operators", static_cache=True) <= 132.125


def test_a_gpu_decodes_by_repeating_a_graph():
    before = SimulatedGraph.replays
    counts(33, static_cache=None)
    assert SimulatedGraph.replays - before == 33 - 2  # the prompt's token and one step come before


def failing_to_capture(error):
    """`StaticDecoder._advance` that raises `error` while a graph is captured."""
    advance = static_decoding.StaticDecoder._advance

    def fails(decoder):
        advance(decoder)
        if torch.utils._python_dispatch._get_current_dispatch_mode() is not None:
            raise error

    return fails


def test_a_generator_draws_after_a_capture_that_failed(monkeypatch, capsys):
    """With torch 2.6 it would be in that capture for ever after."""
    expected = counts(12, True).tokens
    error = RuntimeError("operation not permitted when stream is capturing")
    monkeypatch.setattr(static_decoding.StaticDecoder, "_advance", failing_to_capture(error))
    assert torch.equal(counts(12, True).tokens, expected)
    assert "continues without a CUDA graph" in capsys.readouterr().err


def a_step_of(algorithm, rows, tokens, **changes):
    """Waits of the second training step, by where; sampling and its texts are left out."""
    recipe = echo_recipe(algorithm, steps=2, prompts_per_step=rows, max_tokens=tokens, **changes)

    def spread(completions):
        return torch.arange(len(completions)).remainder(2).float()

    policy = echo_policy().cuda()
    learner = learner_for(policy, recipe, echo_task(), METHODS[algorithm], spread)
    steps = learner.steps(0)
    next(steps)
    with pretended_gpu.counted() as found:
        next(steps)
    sampling = ("policy/sampler.py", "policy/static_decoding.py", "policy/model.py")
    return {where: n for where, n in found.waits.items() if not any(s in where for s in sampling)}


@pytest.mark.parametrize(
    "algorithm, changes, most",
    # Of GRPO's one asks whether its loss has a gradient at a row that was taken for one without.
    [("grpo", {}, 15), ("grpo", {"beta": 0.1}, 19), ("ppo", {}, 31)],
)
def test_waits_of_a_training_step_do_not_grow_with_its_batch(algorithm, changes, most):
    small, large = (a_step_of(algorithm, *size, **changes) for size in ((3, 8), (9, 40)))
    assert sum(small.values()) == sum(large.values()), (small, large)
    assert sum(large.values()) <= most, large
