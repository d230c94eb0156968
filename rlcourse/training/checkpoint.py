"""Checkpoints: weights and optimizer state after some steps, complete and written atomically.

Random states, data position and learning rate are functions of the recipe and the step (see
``batches.py``), so the step is all there is to remember of them.
"""

import hashlib
import json
import shutil
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file

from rlcourse.errors import UserError, first_line
from rlcourse.files import TEMPORARY, write_directory
from rlcourse.training.pipeline import Carried

KEPT = 2
FILES = ("model.safetensors", "optimizer.pt", "carried.pt")  # the last, where there is any


def save_checkpoint(
    directory: Path,
    step: int,
    policy,
    optimizer: torch.optim.Optimizer,
    carried: Carried | None = None,
) -> Path:
    """Write ``directory/step-000123`` and delete all but the last two checkpoints.

    Raises:
        UserError: the disk is full. The earlier checkpoints are then still there.
    """
    path = directory / f"step-{step:06}"

    def fill(temporary: Path) -> None:
        weights = {name: tensor.contiguous() for name, tensor in _weights(policy).items()}
        save_file(weights, temporary / "model.safetensors")
        with (temporary / "optimizer.pt").open("wb") as file:
            torch.save(optimizer.state_dict(), file)
        if state := carried and carried.state_dict():
            with (temporary / "carried.pt").open("wb") as file:
                torch.save(state, file)
        written = [name for name in FILES if (temporary / name).exists()]
        checksums = {name: _checksum(temporary / name) for name in written}
        facts = {"step": step, "sha256": checksums}
        (temporary / "step.json").write_text(json.dumps(facts), encoding="utf-8")

    write_directory(path, fill)
    for old in checkpoints(directory)[:-KEPT]:
        shutil.rmtree(old)
    for abandoned in directory.glob(TEMPORARY + "*"):
        shutil.rmtree(abandoned, ignore_errors=True)
    return path


def checkpoints(directory: Path) -> list[Path]:
    """All checkpoints in `directory`, oldest first."""
    return sorted(directory.glob("step-*"), key=lambda path: int(path.name.removeprefix("step-")))


def load_checkpoint(
    path: Path,
    policy,
    optimizer: torch.optim.Optimizer | None = None,
    carried: Carried | None = None,
) -> int:
    """Put a checkpoint's weights, optimizer and what else it holds in place; return its step.

    Raises:
        UserError: it cannot be read or belongs to another model; the sentence says how to go on.
    """
    try:
        facts = json.loads((path / "step.json").read_text(encoding="utf-8"))
        for name, expected in facts.get("sha256", {}).items():
            if _checksum(path / name) != expected:
                raise ValueError(f"{name} is not what was written")
        step, weights = facts["step"], load_file(path / "model.safetensors")
        own = _weights(policy)
        if weights.keys() != own.keys():
            raise ValueError("its weights are those of another model")
        with torch.no_grad():
            for name, tensor in own.items():
                tensor.copy_(weights[name])
        if optimizer is not None:
            state = torch.load(path / "optimizer.pt", map_location="cpu", weights_only=True)
            optimizer.load_state_dict(state)
        if carried is not None and carried.state_dict():
            state = torch.load(path / "carried.pt", map_location="cpu", weights_only=True)
            carried.load_state_dict(state, next(policy.parameters()).device)
        return step
    except Exception as error:  # a damaged file can raise nearly anything
        earlier = [p for p in checkpoints(path.parent) if p.name < path.name]
        otherwise = f"from {earlier[-1].name}" if earlier else "from the beginning"
        raise UserError(
            f"the checkpoint {path} cannot be read ({first_line(error)}): "
            f"delete that directory and resume {otherwise}"
        ) from error


def _weights(policy) -> dict[str, torch.Tensor]:
    """Trained parameters and buffers by name; of tied ones, the first name only.

    Frozen weights, of a model with adapters, are those that the run started from.
    """
    tensors = {name: p.data for name, p in policy.named_parameters() if p.requires_grad}
    return tensors | {name: b.data for name, b in policy.named_buffers()}


def _checksum(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
