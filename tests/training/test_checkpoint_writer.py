"""Checkpoints are written while the run goes on, and what goes wrong there is heard."""

import errno
import os
import threading

import pytest
import torch
from echo import quiet, weights

from rlcourse.errors import UserError
from rlcourse.files import write_errors_explained
from rlcourse.training.measuring.metrics import read_metrics
from rlcourse.training.runs import checkpoint
from rlcourse.training.runs.checkpoint import CheckpointWriter, checkpoints, load_checkpoint


@pytest.fixture
def optimizer(policy):
    return torch.optim.AdamW(policy.parameters(), lr=1e-2)


@pytest.fixture
def gate(monkeypatch):
    """Nothing is written to a checkpoint until it is set."""
    opened, write = threading.Event(), checkpoint.write_state

    def gated(*arguments):
        assert opened.wait(900)
        return write(*arguments)

    monkeypatch.setattr(checkpoint, "write_state", gated)
    yield opened
    opened.set()


@pytest.fixture
def clock(monkeypatch):
    """The seconds that have passed, as a list of one number."""
    now = [0.0]
    monkeypatch.setattr(checkpoint.time, "monotonic", lambda: now[0])
    return now


def no_space(*arguments):
    raise OSError(errno.ENOSPC, "No space left on device")


def test_what_is_written_is_the_state_at_that_step(tmp_path, policy, optimizer, recipe, gate):
    before = weights(policy)
    with CheckpointWriter(tmp_path, recipe(), policy, optimizer) as saving:
        saving.save(1)
        with torch.no_grad():  # training goes on
            for p in policy.parameters():
                p.add_(1)
        assert checkpoints(tmp_path) == []
        gate.set()
    assert load_checkpoint(tmp_path / "step-000001", policy, optimizer) == 1
    assert torch.equal(weights(policy), before)


def test_due_by_steps_and_by_minutes(tmp_path, policy, optimizer, recipe, gate, clock):
    settings = recipe(steps=100, checkpoint_every=10, checkpoint_minutes=5)
    with CheckpointWriter(tmp_path, settings, policy, optimizer) as saving:
        assert [step for step in range(1, 101) if saving.due(step)] == [*range(10, 101, 10)]
        clock[0] = 299
        assert not saving.due(11)
        clock[0] = 300
        assert saving.due(11)
        saving.save(11)
        clock[0] = 650
        assert not saving.due(12)  # the one before is not yet written
        assert saving.due(20) and saving.due(100)  # these are wanted all the same
        gate.set()
        saving.wait()
        assert saving.due(12)
        clock[0] = 599
        assert not saving.due(12)


def test_without_a_directory_nothing_is_due(policy, optimizer, recipe):
    with CheckpointWriter(None, recipe(), policy, optimizer) as saving:
        assert not any(map(saving.due, range(1, 5)))


def test_a_full_disk_is_heard_at_the_next_step(tmp_path, policy, optimizer, recipe, monkeypatch):
    settings = recipe(steps=10, checkpoint_every=0)
    with CheckpointWriter(tmp_path, settings, policy, optimizer) as saving:
        saving.save(1)
        saving.wait()
        monkeypatch.setattr(os, "fsync", no_space)
        saving.save(2)
        saving._thread.join()
        with pytest.raises(UserError, match=r"the disk is full: .*step-000002"):
            saving.due(3)
    assert [path.name for path in tmp_path.iterdir()] == ["step-000001"]


def test_a_full_disk_is_heard_at_the_end(tmp_path, policy, optimizer, recipe, monkeypatch):
    monkeypatch.setattr(os, "fsync", no_space)
    with (
        pytest.raises(UserError, match="the disk is full"),
        CheckpointWriter(tmp_path, recipe(), policy, optimizer) as saving,
    ):
        saving.save(4)


def test_what_ended_the_run_is_told_rather_than_a_full_disk(
    tmp_path, policy, optimizer, recipe, monkeypatch
):
    monkeypatch.setattr(os, "fsync", no_space)
    with (
        pytest.raises(ZeroDivisionError),
        CheckpointWriter(tmp_path, recipe(), policy, optimizer) as saving,
    ):
        saving.save(4)
        _ = 1 / 0


def test_without_memory_for_a_copy_the_state_itself_is_written(
    tmp_path, policy, optimizer, recipe, monkeypatch
):
    monkeypatch.setattr(checkpoint, "free_memory", lambda: 1000)
    monkeypatch.setattr(checkpoint, "copied", None)  # would raise
    with CheckpointWriter(tmp_path, recipe(), policy, optimizer) as saving:
        saving.save(1)
        assert [path.name for path in checkpoints(tmp_path)] == ["step-000001"]
    assert load_checkpoint(tmp_path / "step-000001", policy, optimizer) == 1


def test_how_often_they_are_written_changes_nothing(tmp_path, policy, task, recipe, clock):
    clock[0] = 0.0
    runs = [
        quiet(recipe(**often), tmp_path / str(n), policy=policy, task=task)
        for n, often in enumerate(
            (
                {"checkpoint_every": 1},
                {"checkpoint_every": 0},
                {"checkpoint_every": 0, "checkpoint_minutes": 1e-9},
            )
        )
    ]
    assert all(torch.equal(weights(runs[0].policy), weights(run.policy)) for run in runs[1:])
    places = [checkpoints(tmp_path / str(n) / "checkpoints") for n in range(2)]
    assert [[path.name for path in place] for place in places] == [
        ["step-000003", "step-000004"],
        ["step-000004"],
    ]


def test_a_full_disk_ends_the_run_with_its_metrics_kept(
    tmp_path, policy, task, recipe, monkeypatch
):
    monkeypatch.setattr(checkpoint, "write_directory", lambda path, fill: failing(path))
    with pytest.raises(UserError, match=r"the disk is full: .*step-000002") as error:
        quiet(recipe(steps=50), tmp_path / "run", policy=policy, task=task)
    assert "\n" not in str(error.value)
    assert len(read_metrics(tmp_path / "run" / "metrics.jsonl")) in range(2, 5)
    assert not (tmp_path / "run" / "result.json").exists()


def failing(path):
    with write_errors_explained(path):
        no_space()
