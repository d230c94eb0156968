"""Killed and resumed, a run with a critic, a head or pairs also ends as if never killed."""

import signal

import pytest
import torch
from test_resume import one_thread, start, wait_for_step, weights  # noqa: F401

from rlcourse.training import Pair, train, write_pairs
from rlcourse.training.recipes.settings import class_of


@pytest.mark.slow
@pytest.mark.parametrize("algorithm", ["ppo", "dapo", "dpo", "reward_model"])
def test_killed_and_resumed_equals_never_killed(tmp_path, policy, task, recipe, algorithm):
    pairs = [Pair(f"{a}", f"#### {a}", f"#### {b}") for a in range(10) for b in range(10) if a != b]
    write_pairs(tmp_path / "pairs.jsonl", pairs)
    settings = {"algorithm": algorithm, "beta": 0.1, "lr": 5e-3, "steps": 15, "eval_every": 4}
    settings |= {"checkpoint_every": 3, "eval_problems": 4, "num_iterations": 2, "minibatches": 2}
    settings = {k: v for k, v in settings.items() if k in class_of(algorithm).settings()}
    if algorithm in ("dpo", "reward_model"):
        settings["pairs"] = str(tmp_path / "pairs.jsonl")
    killed = tmp_path / "killed"
    child = start(killed, settings)
    wait_for_step(killed, 5, child)
    child.send_signal(signal.SIGKILL)
    assert child.wait(900) == -signal.SIGKILL
    assert not (killed / "result.json").exists()

    options = {"policy": policy, "task": task, "progress": False}
    resumed = train(recipe(**settings), killed, resume=True, **options)
    plain = train(recipe(**settings), **options)
    timings = ("seconds", "seconds/sampling", "tokens_per_second")
    for one, two in zip(resumed.metrics, plain.metrics, strict=True):
        assert {k: v for k, v in one.items() if k not in timings} == {
            k: v for k, v in two.items() if k not in timings
        }
    trained = [run.policy or run.reward_model.reader for run in (resumed, plain)]
    assert torch.equal(weights(trained[0]), weights(trained[1]))
