"""Checkpoints: weights and optimizer state after some steps, complete and written atomically.

Random states, data position and learning rate are functions of the recipe and the step (see
``batches.py``), so the step is all there is to remember of them.
"""

import shutil
import time
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import torch

from rlcourse.errors import UserError, first_line
from rlcourse.files import TEMPORARY, write_directory
from rlcourse.training.online.pipeline import Carried
from rlcourse.training.recipes.settings import Recipe

KEPT = 2
STATE = "state.pt"


class Checkpoints:
    """The checkpoints of a run in `directory`: when they are due, and what they hold.

    Without a directory nothing is ever due.
    """

    def __init__(
        self,
        directory: Path | None,
        recipe: Recipe,
        policy,
        optimizer: torch.optim.Optimizer,
        carried: Carried | None = None,
    ):
        self.directory, self.recipe = directory, recipe
        self.states = (policy, optimizer, carried)
        self._begun = time.monotonic()  # the latest one, or the run

    def due(self, step: int) -> bool:
        """Whether the recipe wants a checkpoint after this step."""
        if self.directory is None:
            return False
        every, minutes = self.recipe.checkpoint_every, self.recipe.checkpoint_minutes
        if step == self.recipe.steps or (every and step % every == 0):
            return True
        return minutes is not None and time.monotonic() - self._begun >= 60 * minutes

    def save(self, step: int) -> None:
        """Write the state as it is after `step`. Raises ``UserError`` if the disk is full."""
        assert self.directory is not None, "only a run that has a directory has checkpoints"
        save_checkpoint(self.directory, step, *self.states)
        self._begun = time.monotonic()


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
    state: dict[str, Any] = {"weights": _weights(policy), "optimizer": optimizer.state_dict()}
    if others := carried and carried.state_dict():
        state["carried"] = others
    path = directory / f"step-{step:06}"

    def fill(temporary: Path) -> None:
        with (temporary / STATE).open("wb") as file:  # by its name, a full disk is no OSError
            torch.save(state, file)

    write_directory(path, fill)
    for old in checkpoints(directory)[:-KEPT]:
        shutil.rmtree(old)
    for abandoned in directory.glob(TEMPORARY + "*"):
        shutil.rmtree(abandoned, ignore_errors=True)
    return path


def checkpoints(directory: Path) -> list[Path]:
    """All checkpoints in `directory`, oldest first."""
    return sorted(directory.glob("step-*"), key=step_of)


def step_of(checkpoint: Path) -> int:
    """The step that a checkpoint was made after."""
    return int(checkpoint.name.removeprefix("step-"))


def load_checkpoint(
    path: Path,
    policy,
    optimizer: torch.optim.Optimizer | None = None,
    carried: Carried | None = None,
) -> int:
    """Put a checkpoint's weights, optimizer and what else it holds in place; return its step.

    Raises:
        UserError: it cannot be read or belongs to another model; the sentence says how to continue.
    """
    try:
        with ZipFile(path / STATE) as file:  # torch's format, with checksums that torch ignores
            if file.testzip():
                raise ValueError(f"{STATE} is not what was written")
        state = torch.load(path / STATE, map_location="cpu", weights_only=True)
        own, weights = _weights(policy), state["weights"]
        if weights.keys() != own.keys():
            raise ValueError("its weights are those of another model")
        with torch.no_grad():
            for name, tensor in own.items():
                tensor.copy_(weights[name])
        if optimizer is not None:
            optimizer.load_state_dict(state["optimizer"])
        if carried is not None and carried.state_dict():
            carried.load_state_dict(state["carried"], next(policy.parameters()).device)
        return step_of(path)
    except Exception as error:  # a damaged file can raise nearly anything
        earlier = [p for p in checkpoints(path.parent) if step_of(p) < step_of(path)]
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
