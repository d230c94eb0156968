"""What a step reports of its rows, and the file that keeps it."""

import sys
from dataclasses import replace
from types import SimpleNamespace

import pytest
import torch
from echo import by_length

from rlcourse.errors import UserError
from rlcourse.training import train
from rlcourse.training.measuring.metrics import nothing_to_learn_from, numbers, rollout_metrics


@pytest.fixture
def rollouts(policy):
    """Four completions of 1, 2, 3 and 4 tokens."""
    made = policy.demonstrations(["7"] * 4, ["7", "77", "777", "7777"])
    mask = torch.arange(made.mask.shape[1])[None] < torch.tensor([1, 2, 3, 4])[:, None]
    zeros = torch.zeros(mask.shape)
    return replace(made, mask=mask, old_logprobs=zeros, rewards=torch.ones(4), group_size=2)


def of(rollouts, correctness):
    return numbers(rollout_metrics(rollouts, {"correctness": torch.tensor(correctness)}, [1]))


def test_lengths_of_right_and_of_wrong_completions_are_told_apart(rollouts):
    metrics = of(rollouts, [1.0, 0.0, 0.0, 1.0])
    assert metrics["completions/mean_length"] == 2.5
    assert metrics["completions/mean_length_right"] == (1 + 4) / 2
    assert metrics["completions/mean_length_wrong"] == (2 + 3) / 2


@pytest.mark.parametrize("value, absent", [(1.0, "wrong"), (0.0, "right")])
def test_a_length_of_no_completions_is_absent_not_nan(rollouts, value, absent):
    metrics = of(rollouts, [value] * 4)
    assert f"completions/mean_length_{absent}" not in metrics
    assert all(number == number for number in metrics.values())


def test_a_run_that_never_had_a_signal_says_so(policy, task, recipe, capsys):
    settings = recipe(steps=2, eval_problems=0)
    train(settings, policy=policy, task=task, progress=False, reward=never)
    said = capsys.readouterr().err
    assert "nothing was learned: no step had a gradient, and the mean reward was 0.00" in said
    train(settings, policy=policy, task=task, progress=False, reward=by_length)
    assert capsys.readouterr().err == ""


def test_steps_that_report_no_gradient_are_not_taken_for_none():
    assert nothing_to_learn_from([{"step": 1, "loss": 0.5}]) is None
    assert "no step had a gradient." in nothing_to_learn_from([{"step": 1}])


def never(completions):
    return torch.zeros(len(completions))


def test_a_tracker_gets_every_step_under_the_name_of_the_run(
    tmp_path, policy, task, recipe, monkeypatch
):
    told = []
    tracker = SimpleNamespace(
        init=lambda **how: told.append(how),
        log=lambda metrics, step: told.append((step, metrics["accuracy"])),
        finish=lambda: told.append("finished"),
    )
    monkeypatch.setitem(sys.modules, "trackio", tracker)
    wanted = dict(policy=policy, task=task, progress=False)
    run = train(recipe("grpo"), tmp_path / "first", tracker="trackio", **wanted)
    begun, *steps, last = told
    assert (begun["project"], begun["name"]) == ("rlcourse", "first")
    assert begun["config"]["algorithm"] == "grpo" and last == "finished"
    assert steps == [(m["step"], m["accuracy"]) for m in run.metrics]
    told.clear()  # a run that is through is loaded, and not begun again
    train(recipe("grpo"), tmp_path / "first", tracker="trackio", resume=True, **wanted)
    assert not told
    monkeypatch.setitem(sys.modules, "wandb", None)
    with pytest.raises(UserError, match="--tracker wandb needs a package: pip install wandb"):
        train(recipe("grpo"), tmp_path / "second", tracker="wandb", **wanted)
