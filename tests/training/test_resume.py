"""Killed or stopped at any step and resumed, a run ends with the weights of one that was not."""

import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from echo import likes_sevens, weights

from rlcourse.training import Interrupted, train
from rlcourse.training.recipes.recipe import load_recipe
from rlcourse.training.run import how_it_stopped
from rlcourse.training.runs.checkpoint import checkpoints
from rlcourse.training.runs.outcome import Run

HERE = Path(__file__).parents[1]
CHILD = """
import signal, sys, torch
sys.path.insert(0, {here!r})
from echo import echo_policy, echo_task, echo_recipe
from rlcourse.training import train
from rlcourse.training.measuring.metrics import MetricsWriter
torch.set_num_threads(1)
write = MetricsWriter.write
def write_and_wait(self, metrics):
    write(self, metrics)
    if len(self.history) == {last!r}:
        signal.pause()  # for the signal that ends it, however late it comes
MetricsWriter.write = write_and_wait
train(echo_recipe(**{settings!r}), {out!r}, policy=echo_policy(), task=echo_task(),
      resume={resume!r}, progress=False)
"""


def start(out, settings, resume=False):
    """A child that trains, and after its last step but one waits to be killed."""
    values = {"settings": settings, "out": str(out), "last": settings["steps"] - 1}
    code = CHILD.format(here=str(HERE), resume=resume, **values)
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    return subprocess.Popen([sys.executable, "-c", code], stderr=subprocess.PIPE, env=environment)


def wait_for_step(out, step, child):
    """Until metrics.jsonl holds that many lines."""
    deadline = time.monotonic() + 1800
    while time.monotonic() < deadline and child.poll() is None:
        metrics = out / "metrics.jsonl"
        if metrics.exists() and metrics.read_text().count("\n") >= step:
            return
        time.sleep(0.002)
    raise AssertionError(f"no step {step}: {child.communicate()[1].decode()}")


def content(run):
    """What must not depend on interruptions: the weights, and each step's metrics but the times."""
    timings = ("seconds", "seconds/sampling", "tokens_per_second")
    metrics = [{k: v for k, v in m.items() if k not in timings} for m in run.metrics]
    return weights(run.policy or run.reward_model.reader), metrics


@pytest.mark.slow
def test_killed_at_random_steps_and_resumed_equals_never_killed(tmp_path, policy, task, recipe):
    settings = {
        "algorithm": "grpo",
        "beta": 0.05,
        "num_iterations": 2,
        "minibatches": 2,
        "lr": 5e-3,
    }
    settings |= {"steps": 24, "checkpoint_every": 3, "eval_problems": 4, "eval_every": 7}
    seed = random.randrange(10**6)
    random_step = random.Random(seed)
    reached, killed = 0, tmp_path / "killed"
    for attempt in range(2):
        child = start(killed, settings, resume=attempt > 0)
        reached = min(20, reached + random_step.randint(1, 8))
        wait_for_step(killed, reached, child)
        time.sleep(random_step.random() * 0.05)  # anywhere in the step, the checkpoint included
        child.send_signal(signal.SIGKILL)
        assert child.wait(900) == -signal.SIGKILL, f"seed {seed}"
        reached = len((killed / "metrics.jsonl").read_text().splitlines())
        assert not (killed / "result.json").exists()

    options = {"policy": policy, "task": task, "progress": False}
    resumed = train(recipe(**settings), killed, resume=True, **options)
    plain = train(recipe(**settings), **options)
    assert torch.equal(weights(resumed.policy), weights(plain.policy)), f"seed {seed}"
    assert content(resumed)[1] == content(plain)[1], f"seed {seed}"
    for one, two in ((resumed.before, plain.before), (resumed.after, plain.after)):
        assert replace(one, seconds=0) == replace(two, seconds=0)
    assert {path.name for path in killed.glob("**/.partial-*")} <= {".partial-lock"}


@pytest.fixture(autouse=True)
def one_thread():
    """Sums depend on how many threads share them; the children use one."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def interrupt_at(step):
    """A reward that presses Ctrl-C in that step."""
    calls = []

    def reward(completions):
        calls.append(1)
        if len(calls) == step:
            os.kill(os.getpid(), signal.SIGINT)
        return torch.tensor([float("7" in text) for text in completions])

    return reward


def test_stopped_and_resumed_equals_never_stopped(tmp_path, policy, task, recipe):
    settings = recipe(steps=9, eval_every=4)
    options = {"policy": policy, "task": task, "progress": False}
    plain = train(settings, tmp_path / "plain", reward=interrupt_at(0), **options)
    with pytest.raises(Interrupted) as stopped:
        train(settings, tmp_path / "run", reward=interrupt_at(5), **options)
    assert len(stopped.value.run.metrics) == 5
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    resumed = train(settings, tmp_path / "run", reward=interrupt_at(0), resume=True, **options)
    for one, two in zip(content(plain), content(resumed), strict=True):
        assert torch.equal(one, two) if isinstance(one, torch.Tensor) else one == two


STALE = {"sampler_staleness": 2}
KINDS = {
    "a stale sampler, truncated weights": STALE
    | {"truncate": {"mode": "mask", "cap": 1.5}, "num_iterations": 2},
    "a stale sampler, minibatches": STALE | {"minibatches": 2},
    "a reference that is renewed": {"reference_every": 3, "beta": 0.1},
    "a filter": {"overlong_filter": True, "max_tokens": 4},
    "old log-probs computed anew": {"old_logprobs": "recomputed", "num_iterations": 2},
    "cispo, stale": {"algorithm": "cispo"} | STALE,
    "dapo, stale": {"algorithm": "dapo", "overlong_buffer": 2} | STALE,
    "ppo": {"algorithm": "ppo", "num_iterations": 2, "minibatches": 2, "beta": 0.05},
    "ppo in float16": {"algorithm": "ppo", "dtype": "float16"},
    "dpo": {"algorithm": "dpo", "beta": 0.1, "group_size": 8},
    "a reward model": {"algorithm": "reward_model", "group_size": 8},
    "adapters": {"lora": {"rank": 4, "alpha": 8}, "beta": 0.05},
    "averages in 8 bits": {"optimizer": "adamw_8bit", "dtype": "float16"},
}


@pytest.mark.parametrize("kind", KINDS)
def test_whatever_a_run_carries_from_step_to_step_is_in_its_checkpoints(
    kind, warm, task, recipe, tmp_path
):
    for library, word in (("peft", "lora"), ("bitsandbytes", "optimizer")):
        if word in KINDS[kind]:
            pytest.importorskip(library)
    settings = {"steps": 6, "eval_problems": 0, "lr": 5e-3, "checkpoint_every": 2} | KINDS[kind]
    options = {"policy": warm, "task": task, "reward": likes_sevens, "progress": False}
    plain = train(recipe(**settings), tmp_path, **options)
    (tmp_path / "result.json").unlink()
    last = checkpoints(tmp_path / "checkpoints")[-1]
    last.rename(last.with_name("gone"))  # as if killed between steps 4 and 6
    resumed = train(recipe(**settings), tmp_path, resume=True, **options)
    for one, two in zip(content(plain), content(resumed), strict=True):
        assert torch.equal(one, two) if isinstance(one, torch.Tensor) else one == two


def test_stopping_without_a_directory_says_that_nothing_was_kept(policy, task, recipe):
    with pytest.raises(Interrupted, match="after step 2 of 4; nothing was saved") as stopped:
        train(recipe(), policy=policy, task=task, reward=interrupt_at(2), progress=False)
    assert len(stopped.value.run.metrics) == 2


def test_a_signal_in_the_last_step_does_not_spoil_the_run(tmp_path, policy, task, recipe):
    train(
        recipe(), tmp_path / "run", policy=policy, task=task, reward=interrupt_at(4), progress=False
    )
    assert (tmp_path / "run" / "result.json").exists()


def test_training_works_outside_the_main_thread(policy, task, recipe):
    runs = []
    options = {"policy": policy, "task": task, "progress": False}
    thread = threading.Thread(target=lambda: runs.append(train(recipe(), **options)))
    thread.start()
    thread.join()
    assert len(runs[0].metrics) == 4


def test_metrics_after_the_checkpoint_are_cut_away_torn_lines_too(tmp_path, policy, task, recipe):
    options = {"policy": policy, "task": task, "progress": False}
    settings = recipe(eval_problems=0)
    plain = train(settings, tmp_path, **options)
    (tmp_path / "result.json").unlink()
    saved = checkpoints(tmp_path / "checkpoints")[-1]
    saved.rename(saved.with_name("gone"))  # as if killed between steps 2 and 4
    for name in ("metrics.jsonl", "groups.jsonl"):
        with (tmp_path / name).open("a") as file:
            file.write('{"step": 5, "loss": 0.')
    resumed = train(settings, tmp_path, resume=True, **options)
    assert content(resumed)[1] == content(plain)[1]
    for name in ("metrics.jsonl", "groups.jsonl"):
        lines = (tmp_path / name).read_text().splitlines()
        assert [json.loads(line)["step"] for line in lines] == [1, 2, 3, 4]


@pytest.mark.parametrize("inner", ["warm_start", "teacher"])
def test_a_run_within_a_run_is_continued_by_the_command_of_the_whole(inner):
    run = Run(load_recipe("sft", steps=3), None, [], directory=Path("run1") / inner)
    assert how_it_stopped(run, "SIGTERM").endswith("with --out run1 --resume to continue")
