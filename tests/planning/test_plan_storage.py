"""What a plan says of checkpoints is what a run writes."""

import shutil
from collections import namedtuple
from pathlib import Path

import pytest
from echo import having, quiet
from typer.testing import CliRunner

from rlcourse.cli import app
from rlcourse.planning import storage
from rlcourse.planning.memory import total
from rlcourse.planning.plan import plan, plan_table
from rlcourse.planning.storage import checkpoint_of, disk_of, disk_warning, waiting
from rlcourse.planning.work import work_of
from rlcourse.training import load_recipe
from rlcourse.training.runs.checkpoint import checkpoints

Usage = namedtuple("Usage", "total used free")


@pytest.fixture
def disk(monkeypatch):
    """Sets the bytes that are free on every disk."""
    return lambda free: monkeypatch.setattr(shutil, "disk_usage", lambda _: Usage(1e15, 0, free))


@pytest.mark.parametrize(
    "algorithm, changes",
    [
        ("grpo", {}),
        ("grpo", {"beta": 0.1, "reference_every": 1}),
        ("grpo", {"lora": {"rank": 64}}),
        ("ppo", {}),
        ("sft", {}),
    ],
)
def test_a_checkpoint_has_the_size_that_was_planned(tmp_path, algorithm, changes):
    settings = {"steps": 1, "prompts_per_step": 2, "group_size": 2, "max_tokens": 4, "warmup": 0}
    settings |= {"eval_problems": 0, "warm_start": None, "device": "cpu", "minibatches": 1}
    recipe = load_recipe(algorithm).but(**having(algorithm, **settings), **changes)
    quiet(recipe, tmp_path)
    (path,) = checkpoints(tmp_path / "checkpoints")
    size = (path / "state.pt").stat().st_size
    # Names, and for each tensor of a small model some bytes of the archive.
    assert size == pytest.approx(checkpoint_of(work_of(recipe)).amount, abs=150_000, rel=0.02)


def test_a_plan_warns_of_a_disk_that_is_too_small(disk):
    work = work_of(load_recipe("gsm8k_grpo"))
    needed = total(disk_of(work))
    disk(needed)
    assert disk_warning(work, Path.cwd()) is None
    assert "WARNING" not in plan_table(plan("gsm8k_grpo", "L4"))
    disk(needed - 1)
    table = plan_table(plan("gsm8k_grpo", "L4"))
    assert "GB free, and the run writes 19.8 GB: choose an --out on a larger disk" in table


def test_training_waits_for_copies_and_for_a_disk_that_falls_behind():
    recipe = load_recipe("gsm8k_grpo", steps=100)
    size = checkpoint_of(work_of(recipe)).amount
    copying, writing = size / storage.COPYING, size / storage.WRITING

    def seconds(step, evaluation=1e9, **changes):
        work = work_of(recipe.but(**changes))
        return waiting(work, step, 100 * step, evaluation).amount

    never = {"checkpoint_every": 0, "checkpoint_minutes": None}
    assert seconds(2.0, **never) == pytest.approx(copying)  # after the last step
    assert seconds(2.0, evaluation=0, **never) == pytest.approx(copying + writing)
    assert seconds(6.0, checkpoint_minutes=5) == pytest.approx(3 * copying)
    assert seconds(9.0, **never | {"checkpoint_every": 50}) == pytest.approx(2 * copying)
    behind = seconds(0.1, **never | {"checkpoint_every": 10})
    assert behind == pytest.approx(10 * copying + 9 * (writing - 1.0))
    told = waiting(work_of(recipe.but(**never | {"checkpoint_every": 10})), 0.1, 10, 1e9)
    assert "set checkpoint_minutes=5 instead" in told.arithmetic


@pytest.mark.parametrize("name", ["gsm8k_grpo", "gsm8k_smollm2_1.7b", "gsm8k_qwen2.5_1.5b"])
def test_checkpoints_take_less_than_a_twentieth_of_a_run(name):
    for fit in plan(load_recipe(name, steps=1000)).fits:
        if fit.duration is None:
            continue
        (line,) = [line for line in fit.duration.run if line.name == "checkpoints"]
        assert line.amount < 0.05 * fit.duration.seconds, (name, fit.gpu)


def test_plan_tells_what_the_disk_is_needed_for():
    shown = CliRunner().invoke(app, ["plan", "gsm8k_grpo", "--gpu", "L4"]).output
    assert "disk: checkpoints" in shown and "3 x (12 B x 494,032,768)" in shown
    told = plan("gsm8k_grpo").to_dict()["disk"]
    assert told["total"] == sum(line["amount"] for line in told["lines"])


def test_the_embedded_model_needs_no_warning_on_a_small_disk(disk):
    disk(20e6)
    assert disk_warning(work_of(load_recipe("grpo")), Path.cwd()) is None
