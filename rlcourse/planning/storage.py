"""What a run keeps outside of the GPU: checkpoints on a disk, and the copy that is being written.

Training waits while the state is copied into the machine's memory, and for the disk only where a
checkpoint is due before the earlier one is written (``training/runs/checkpoint.py``). The last one
is written while the policy is evaluated.
"""

import shutil
from pathlib import Path

from rlcourse.planning.memory import (
    Line,
    average_bytes,
    reference_of,
    scalar_parameters,
    total,
    trained_parameters,
)
from rlcourse.planning.work import Work

COPYING = 2e9  # bytes a second from a GPU into memory that is allocated for it
WRITING = 0.5e9  # bytes a second to a disk, checksum included
AT_ONCE = 3  # two checkpoints are kept while a third is written


def checkpoint_of(work: Work) -> Line:
    """The size of one checkpoint: what learns in float32, and AdamW's two averages."""
    numbers = trained_parameters(work)
    if work.recipe.method.critic:
        numbers += scalar_parameters(work)
    size = 4 + 2 * average_bytes(work)
    told, amount = f"{size:.3g} B x {numbers:,}", size * numbers
    if work.recipe.reference_every:
        told, amount = f"{told} + the reference", amount + reference_of(work).amount
    return Line("a checkpoint", told, amount)


def disk_of(work: Work) -> tuple[Line, ...]:
    """What a run takes on the disk at most."""
    one, n = checkpoint_of(work), work.shape.parameters
    if not work.recipe.method.trains_policy:
        n = scalar_parameters(work)
    return (
        Line("checkpoints", f"{AT_ONCE} x ({one.arithmetic})", AT_ONCE * one.amount),
        Line("what was trained", f"4 B x {n:,}", 4 * n),
    )


def free_disk(place: Path) -> int:
    """Bytes that are free where `place` is."""
    return shutil.disk_usage(place).free


def disk_warning(work: Work, place: Path) -> str | None:
    """A sentence if a run in `place` would fill the disk."""
    needed, free = total(disk_of(work)), free_disk(place)
    if needed <= free:
        return None
    return (
        f"the disk of {place} has {free / 1e9:.1f} GB free, and the run writes "
        f"{needed / 1e9:.1f} GB: choose an --out on a larger disk, or free some space"
    )


def waiting(work: Work, step: float, training: float, evaluation: float) -> Line:
    """The seconds that training waits for checkpoints, where a step takes `step` seconds, all of
    them `training` and the evaluation at the end `evaluation`."""
    recipe, size = work.recipe, checkpoint_of(work).amount
    copying, writing = size / COPYING, size / WRITING
    every, minutes = recipe.checkpoint_every, recipe.checkpoint_minutes
    counted = (recipe.steps - 1) // every if every else 0
    timed = int(training / max(60 * minutes, writing)) if minutes is not None else 0
    seconds = (counted + timed + 1) * copying
    seconds += counted * max(0.0, writing - every * step) + max(0.0, writing - evaluation)
    told = f"{counted + timed + 1} x {size / 1e9:.2f} GB copied at {COPYING / 1e9:g} GB/s"
    if counted and writing > every * step:
        told += f", and written at {WRITING / 1e9:g} GB/s: set checkpoint_minutes=5 instead"
    return Line("checkpoints", told, seconds)
