"""Every recipe trains on the device, and learns there what it learns on the CPU."""

import shutil
from math import isfinite

import pretended_gpu
import pytest
import torch
from echo import echo_policy, echo_recipe, echo_task

from rlcourse.errors import UserError
from rlcourse.training import train
from rlcourse.training.recipes.methods import METHODS

SETTINGS = {
    "ppo": {"minibatches": 2, "num_iterations": 2, "beta": 0.02},
    "gspo": {"minibatches": 2, "num_iterations": 2},
    "dapo": {"overlong_buffer": 4},
    "dpo": {"beta": 0.1, "questions": 10},
    "reward_model": {"questions": 10},
}
MORE = {
    "grpo with a penalty": {"beta": 0.04, "num_iterations": 2},
    "grpo in micro-batches": {"micro_batch": 3},
    "grpo with checkpointing": {"gradient_checkpointing": True, "micro_batch": 7},
    "grpo with adapters": {"lora": {"rank": 2}, "beta": 0.04},
    "grpo with filters": {"top_k": 5, "top_p": 0.9},
    "grpo with the format's reward": {"rewards": {"format": 0.2}, "eval_every": 2},
}
RUNS = {name: (name, SETTINGS.get(name, {})) for name in METHODS}
RUNS |= {label: ("grpo", changes) for label, changes in MORE.items()}


def short_ones(completions):
    """A reward that random completions earn now and then, so that there is something to learn."""
    return torch.tensor([float(len(text) <= 6) for text in completions])


def trained(device, algorithm, out=None, resume=False, **changes):
    # The same decoder on both sides: which of its draws a row gets depends on who has left.
    settings = {"steps": 3, "prompts_per_step": 5, "static_cache": True, "warmup": 0}
    recipe = echo_recipe(algorithm, **settings | changes)
    start, reward = echo_policy().to(device), None if recipe.method.imitates else short_ones
    options = {"policy": start, "task": echo_task(), "reward": reward, "progress": False}
    if recipe.method.taught:
        options["teacher"] = echo_policy(seed=1).to(device)
    return train(recipe, out, resume=resume, **options)


def numbers(run):
    """What a run has measured, without its clock."""
    clock = ("seconds", "seconds/sampling", "tokens_per_second")
    return [{k: v for k, v in m.items() if k not in clock} for m in run.metrics]


def device_of(run):
    return (run.policy or run.reward_model).device.type


@pytest.mark.parametrize("name", RUNS)
def test_a_run_is_the_run_of_the_cpu(name):
    algorithm, changes = RUNS[name]
    there, here = (trained(device, algorithm, **changes) for device in ("cuda", "cpu"))
    assert (device_of(there), device_of(here)) == ("cuda", "cpu")
    assert any(m["grad_norm"] > 0 for m in here.metrics)
    if not pretended_gpu.SAME_DRAWS and not there.recipe.method.imitates:
        assert all(isfinite(value) for m in there.metrics for value in m.values())
        return
    # The same kernels on the same draws: nothing but the order of sums may differ (6e-5 at most).
    for ours, theirs in zip(numbers(there), numbers(here), strict=True):
        assert ours == pytest.approx(theirs, rel=1e-3, abs=1e-5)
    if here.after is not None:
        assert there.after.accuracy == here.after.accuracy


def test_a_resumed_run_is_the_run_that_was_not_stopped(tmp_path):
    whole = trained("cuda", "grpo", tmp_path / "whole", checkpoint_every=1, eval_problems=0)
    out = tmp_path / "stopped"
    trained("cuda", "grpo", out, checkpoint_every=1, eval_problems=0)
    shutil.rmtree(out / "checkpoints" / "step-000003")
    (out / "result.json").unlink()
    resumed = trained("cuda", "grpo", out, resume=True, checkpoint_every=1, eval_problems=0)
    assert numbers(resumed) == numbers(whole)
    for key, value in whole.policy.state_dict().items():
        assert torch.equal(resumed.policy.state_dict()[key], value)


@pytest.mark.pretended
def test_an_update_that_does_not_fit_is_made_in_pieces(capsys):
    whole = trained("cuda", "grpo", steps=1, eval_problems=0, max_tokens=40)
    with pretended_gpu.counted() as needs:
        trained("cuda", "grpo", steps=1, eval_problems=0, max_tokens=40, micro_batch=4)
    pretended_gpu.set_capacity(1.05 * needs.peak)
    less = trained("cuda", "grpo", steps=1, eval_problems=0, max_tokens=40)
    assert "out of memory" in capsys.readouterr().err
    assert less.metrics[0]["grad_norm"] == pytest.approx(whole.metrics[0]["grad_norm"], rel=1e-3)


@pytest.mark.pretended
def test_what_never_fits_ends_with_a_sentence():
    pretended_gpu.set_capacity(pretended_gpu.allocated() + 20_000)
    with pytest.raises(UserError, match=r"too little memory|does not fit"):
        trained("cuda", "grpo", max_tokens=40)
