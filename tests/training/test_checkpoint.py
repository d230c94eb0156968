"""Checkpoints: whole or absent, the last two kept, and a sentence when one cannot be used."""

import errno
import os

import pytest
import torch

from rlcourse.errors import UserError
from rlcourse.files import write_errors_explained, write_text
from rlcourse.training.runs import checkpoint
from rlcourse.training.runs.checkpoint import (
    Checkpoints,
    checkpoints,
    load_checkpoint,
    save_checkpoint,
)


def optimizer_of(policy):
    """An optimizer that has a state: one step was taken."""
    optimizer = torch.optim.AdamW(policy.parameters(), lr=1e-2)
    sum((p**2).sum() for p in policy.parameters()).backward()
    optimizer.step()
    return optimizer


def fresh_optimizer(policy):
    return torch.optim.AdamW(policy.parameters(), lr=1e-2)


def no_space(*arguments):
    raise OSError(errno.ENOSPC, "No space left on device")


@pytest.fixture
def clock(monkeypatch):
    """The seconds that have passed, as a list of one number."""
    now = [0.0]
    monkeypatch.setattr(checkpoint.time, "monotonic", lambda: now[0])
    return now


def test_a_checkpoint_restores_weights_and_optimizer_exactly(policy, tmp_path):
    optimizer = optimizer_of(policy)
    path = save_checkpoint(tmp_path, 7, policy, optimizer)
    other = policy.clone()
    for p in other.parameters():
        p.data.zero_()
    restored = fresh_optimizer(other)
    assert load_checkpoint(path, other, restored) == 7
    for a, b in zip(policy.parameters(), other.parameters(), strict=True):
        assert torch.equal(a, b)
    for a, b in zip(
        optimizer.state_dict()["state"].values(),
        restored.state_dict()["state"].values(),
        strict=True,
    ):
        assert all(torch.equal(a[key], b[key]) for key in ("step", "exp_avg", "exp_avg_sq"))


def test_tied_weights_stay_tied(policy, tmp_path):
    policy.model.lm_head.weight = policy.model.model.embed_tokens.weight
    path = save_checkpoint(tmp_path, 1, policy, fresh_optimizer(policy))
    with torch.no_grad():
        policy.model.lm_head.weight.zero_()
    load_checkpoint(path, policy)
    assert policy.model.lm_head.weight.abs().sum() > 0
    assert policy.model.lm_head.weight is policy.model.model.embed_tokens.weight


def test_due_by_steps_and_by_minutes(tmp_path, policy, recipe, clock):
    settings = recipe(steps=100, checkpoint_every=10, checkpoint_minutes=5)
    saving = Checkpoints(tmp_path, settings, policy, fresh_optimizer(policy))
    assert [step for step in range(1, 101) if saving.due(step)] == [*range(10, 101, 10)]
    clock[0] = 299
    assert not saving.due(11)
    clock[0] = 300
    assert saving.due(11)
    saving.save(11)
    clock[0] = 599
    assert not saving.due(12)
    without = Checkpoints(None, settings, policy, fresh_optimizer(policy))
    assert not any(map(without.due, range(1, 101)))


def test_the_last_two_are_kept(policy, tmp_path):
    optimizer = fresh_optimizer(policy)
    for step in (1, 2, 3, 1_000_000):
        save_checkpoint(tmp_path, step, policy, optimizer)
    assert [p.name for p in checkpoints(tmp_path)] == ["step-000003", "step-1000000"]


@pytest.mark.parametrize("damage", ["cut", "missing", "noise"])
def test_an_unreadable_checkpoint_is_named_with_what_to_do(policy, tmp_path, damage):
    optimizer = optimizer_of(policy)
    save_checkpoint(tmp_path, 1, policy, optimizer)
    path = save_checkpoint(tmp_path, 2, policy, optimizer)
    file = path / "state.pt"
    content = file.read_bytes()
    file.unlink()
    if damage != "missing":
        new = {"cut": content[: len(content) // 2], "noise": b"\x93" * len(content)}
        file.write_bytes(new[damage])
    with pytest.raises(UserError) as error:
        load_checkpoint(path, policy, optimizer)
    assert f"the checkpoint {path} cannot be read" in str(error.value)
    assert "delete that directory and resume from step-000001" in str(error.value)
    assert "\n" not in str(error.value)


def test_a_checkpoint_of_another_model_is_refused(policy, tmp_path):
    path = save_checkpoint(tmp_path, 1, policy, fresh_optimizer(policy))
    policy.model.model.layers.append(policy.model.model.layers[0])
    policy.model.model.layers[1] = type(policy.model.model.layers[0])(policy.model.config, 1)
    with pytest.raises(UserError, match="those of another model"):
        load_checkpoint(path, policy)


def test_a_full_disk_leaves_the_earlier_checkpoint_and_says_so(policy, tmp_path, monkeypatch):
    optimizer = fresh_optimizer(policy)
    save_checkpoint(tmp_path, 1, policy, optimizer)

    monkeypatch.setattr(os, "fsync", no_space)
    with pytest.raises(
        UserError, match=r"the disk is full: .*step-000002 could not be written; free"
    ):
        save_checkpoint(tmp_path, 2, policy, optimizer)
    with pytest.raises(UserError, match="the disk is full"):
        write_text(tmp_path / "text", "text")
    assert [p.name for p in tmp_path.iterdir()] == ["step-000001"]  # and nothing half-written


def test_a_file_that_finds_no_room_halfway_is_one_sentence(policy, tmp_path):
    """torch raises a RuntimeError about positions, while it handles the OSError."""
    resource = pytest.importorskip("resource")
    limit = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1_000, limit[1]))
    try:
        with pytest.raises(UserError, match=r"step-000001 could not be written: .*too large"):
            save_checkpoint(tmp_path, 1, policy, fresh_optimizer(policy))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limit)
    assert not list(tmp_path.iterdir())
    with pytest.raises(RuntimeError, match="ours"), write_errors_explained(tmp_path):
        raise RuntimeError("ours")


def test_a_flipped_byte_is_noticed(policy, tmp_path):
    optimizer = fresh_optimizer(policy)
    path = save_checkpoint(tmp_path, 1, policy, optimizer)
    content = bytearray((path / "state.pt").read_bytes())
    content[len(content) // 2] ^= 1
    (path / "state.pt").write_bytes(content)
    with pytest.raises(UserError, match="cannot be read"):
        load_checkpoint(path, policy, optimizer)
