"""Checkpoints: weights and optimizer state after some steps, complete and written atomically.

Random states, data position and learning rate are functions of the recipe and the step (see
``batches.py``), so the step is all there is to remember of them.

Training waits for a copy of the state in the machine's memory, and a thread writes the copy.
"""

import hashlib
import json
import shutil
import threading
import time
from pathlib import Path
from typing import Any, BinaryIO

import torch

from rlcourse.errors import UserError, first_line
from rlcourse.files import TEMPORARY, write_directory
from rlcourse.machine import free_memory
from rlcourse.training.online.pipeline import Carried
from rlcourse.training.recipes.settings import Recipe

KEPT = 2
STATE = "state.pt"


class CheckpointWriter:
    """Writes the checkpoints of a run to `directory`, one at a time, while the run goes on.

    ``with CheckpointWriter(...) as saving:`` waits at the end until the last one is on the disk.
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
        self._thread: threading.Thread | None = None
        self._error: BaseException | None = None
        self._begun = time.monotonic()  # the latest copy, or the run

    def due(self, step: int) -> bool:
        """Whether the recipe wants a checkpoint after this step.

        By the clock it wants none while the one before is still being written.
        Raises ``UserError`` if that could not be written.
        """
        if self.directory is None:
            return False
        self._raise_error()
        every, minutes = self.recipe.checkpoint_every, self.recipe.checkpoint_minutes
        if step == self.recipe.steps or (every and step % every == 0):
            return True
        busy = self._thread is not None and self._thread.is_alive()
        late = minutes is not None and time.monotonic() - self._begun >= 60 * minutes
        return late and not busy

    def save(self, step: int) -> None:
        """Copy the state as it is after `step`, and begin to write the copy.

        If the machine has no memory for a copy, the state itself is written, and training waits.
        Raises ``UserError`` if this or the one before could not be written.
        """
        assert self.directory is not None, "only a run that has a directory has checkpoints"
        self.wait()
        self._begun = time.monotonic()
        state = state_of(*self.states)
        if 1.2 * size_of(state) > free_memory():
            write_state(self.directory, step, state)
            return
        # A daemon: a second Ctrl-C need not wait for it, and half a checkpoint is none.
        arguments = (self.directory, step, copied(state))
        self._thread = threading.Thread(target=self._write, args=arguments, daemon=True)
        self._thread.start()

    def _write(self, *arguments) -> None:
        try:
            write_state(*arguments)
        except BaseException as error:  # raised again where somebody hears it
            self._error = error

    def wait(self) -> None:
        """Wait until nothing is being written. Raises ``UserError`` if it could not be."""
        if self._thread is not None:
            self._thread.join()
            self._thread = None
        self._raise_error()

    def _raise_error(self) -> None:
        if (error := self._error) is not None:
            self._error = None
            raise error

    def __enter__(self) -> "CheckpointWriter":
        return self

    def __exit__(self, kind, *exception) -> None:
        if kind is None:
            self.wait()
        elif self._thread is not None:
            self._thread.join()  # what ended the run matters more than an error of the writer


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
    return write_state(directory, step, state_of(policy, optimizer, carried))


def state_of(
    policy, optimizer: torch.optim.Optimizer, carried: Carried | None = None
) -> dict[str, Any]:
    """Everything that a checkpoint holds. The tensors are those that training changes."""
    state: dict[str, Any] = {"weights": _weights(policy), "optimizer": optimizer.state_dict()}
    if others := carried and carried.state_dict():
        state["carried"] = others
    return state


def copied(value: Any) -> Any:
    """Dictionaries, lists and tuples of plain values and tensors, with all tensors copied to the
    CPU."""
    if isinstance(value, torch.Tensor):
        return value.detach().to("cpu", copy=True)
    if isinstance(value, dict):
        return {key: copied(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(copied(item) for item in value)
    return value


def size_of(value: Any) -> int:
    """Bytes of the tensors in it."""
    if isinstance(value, torch.Tensor):
        return value.nbytes
    items = value.values() if isinstance(value, dict) else value
    return sum(map(size_of, items)) if isinstance(value, (dict, list, tuple)) else 0


class _Hashed:
    """A file that knows the checksum of what was written to it."""

    def __init__(self, file: BinaryIO):
        self.file, self.sha256 = file, hashlib.sha256()

    def write(self, data) -> int:
        self.sha256.update(data)
        return self.file.write(data)

    def flush(self) -> None:
        self.file.flush()


def write_state(directory: Path, step: int, state: dict[str, Any]) -> Path:
    """Write `state` as ``directory/step-000123`` and delete all but the last two checkpoints.

    Raises:
        UserError: the disk is full. The earlier checkpoints are then still there.
    """
    path = directory / f"step-{step:06}"

    def fill(temporary: Path) -> None:
        with (temporary / STATE).open("wb") as file:
            hashed: Any = _Hashed(file)
            torch.save(state, hashed)
        facts = {"step": step, "sha256": {STATE: hashed.sha256.hexdigest()}}
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
        UserError: it cannot be read or belongs to another model; the sentence says how to continue.
    """
    try:
        facts = json.loads((path / "step.json").read_text(encoding="utf-8"))
        for name, expected in facts["sha256"].items():
            if _checksum(path / name) != expected:
                raise ValueError(f"{name} is not what was written")
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
        return facts["step"]
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
