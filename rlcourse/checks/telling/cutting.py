"""Smaller arguments that a caller could still pass: fewer rows or groups, fewer tokens.

The tensors in a batch of rollouts or a script of episodes are cut like the arguments themselves,
under names such as "rollouts.tokens".
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from rlcourse.checks.asking.specs import Spec

Arguments = dict[str, Any]

BATCHES = ("rollouts", "sentences", "scripted_environments")  # kinds of `Spec` with rows to cut
COUNTS = ("num_iterations", "max_turns", "max_backtracks", "iterations")  # of rounds


def flat(arguments: Arguments) -> Arguments:
    """The arguments, together with the contents of batches."""
    found: Arguments = {}
    for name, value in arguments.items():
        if isinstance(value, Spec) and value.kind in BATCHES:
            found |= {f"{name}.{option}": inner for option, inner in value.options.items()}
        else:
            found[name] = value
    return found


def nested(values: Arguments, like: Arguments) -> Arguments:
    """The arguments again, in the form of `like`."""
    return {
        name: replace(value, options={o: values[f"{name}.{o}"] for o in value.options})
        if isinstance(value, Spec) and value.kind in BATCHES
        else values[name]
        for name, value in like.items()
    }


def grid_in(arguments: Arguments) -> Tensor | None:
    """The first (N, T) argument."""
    grids = (a for a in arguments.values() if isinstance(a, Tensor) and a.ndim == 2)
    return next(grids, None)


def mask_in(arguments: Arguments) -> Tensor | None:
    """The mask, if it is (N, T)."""
    mask = arguments.get("mask")
    return mask.bool() if isinstance(mask, Tensor) and mask.ndim == 2 else None


def cuts(arguments: Arguments) -> Iterator[Arguments]:
    """Half of the rows or columns gone, or a quarter, … or one; the last ones first."""
    values = flat(arguments)
    for cut in _cuts(values):
        if is_sound(values, cut):
            yield nested(cut, arguments)


def _cuts(values: Arguments) -> Iterator[Arguments]:
    group = next((name for name in values if name.endswith("group_size")), None)
    of_group = values[group] if group else 1
    for axis in (0, 1):
        found = {_size(value, axis) for value in values.values()} - {0, 1}
        for size in sorted(found, reverse=True):
            unit = of_group if axis == 0 and size % of_group == 0 else 1
            for kept in _halves(size // unit):
                rows = [unit * i + j for i in kept for j in range(unit)]
                yield taken(values, axis, size, rows)
            if group and unit > 1:  # whole groups that are smaller
                for kept in _halves(unit):
                    rows = [start + j for start in range(0, size, unit) for j in kept]
                    yield {**taken(values, 0, size, rows), group: len(kept)}
    for name in COUNTS:
        if isinstance(count := values.get(name), int) and count > 1:
            yield {**values, name: count // 2}
            yield {**values, name: count - 1}


def _halves(size: int) -> Iterator[list[int]]:
    """Which of `size` things stay if half of them are removed, or a quarter, … or one."""
    chunk = size // 2
    while chunk:
        for end in range(size, chunk - 1, -chunk):
            yield [i for i in range(size) if not end - chunk <= i < end]
        chunk //= 2


def _size(value: Any, axis: int) -> int:
    if isinstance(value, list) and axis == 0:
        return len(value)
    return value.shape[axis] if isinstance(value, Tensor) and value.ndim > axis else 0


def taken(values: Arguments, axis: int, size: int, kept: list[int]) -> Arguments:
    """Only `kept` of everything that has `size` rows (axis 0) or columns (axis 1)."""

    def part(value: Any) -> Any:
        if _size(value, axis) != size:
            return value
        if isinstance(value, list):
            return [value[i] for i in kept]
        return value.index_select(axis, torch.tensor(kept))

    return {name: part(value) for name, value in values.items()}


def is_sound(before: Arguments, after: Arguments) -> bool:
    """Whether a caller could pass it: groups are whole, no completion has become empty, and what
    was a distribution, or the logarithm of one, still is."""
    for name in before:
        if name.endswith("mask") and _rows_emptied(before[name], after[name]):
            return False
        if name.endswith("group_size") and not _groups_are_whole(name, before, after):
            return False
    return all(
        test(after[name]) or not test(value)
        for name, value in before.items()
        for test in (_is_distribution, _is_log_distribution)
    )


def _rows_emptied(before: Any, after: Any) -> bool:
    if not all(isinstance(mask, Tensor) and mask.ndim == 2 for mask in (before, after)):
        return False
    was_empty, is_empty = (bool((~m.bool().any(1)).any()) for m in (before, after))
    return is_empty and not was_empty


def _groups_are_whole(group: str, before: Arguments, after: Arguments) -> bool:
    """Whether everything that had whole groups of rows still has them, in a batch or outside."""
    home = group.removesuffix("group_size")
    return all(
        _size(after[name], 0) % after[group] == 0
        for name, value in before.items()
        if name.startswith(home) and _size(value, 0) and _size(value, 0) % before[group] == 0
    )


def _is_distribution(value: Any) -> bool:
    if not isinstance(value, Tensor) or not value.is_floating_point() or value.numel() < 2:
        return False
    return bool((value >= 0).all() and ((value.sum(-1) - 1).abs() < 1e-5).all())


def _is_log_distribution(value: Any) -> bool:
    if not isinstance(value, Tensor) or not value.is_floating_point() or value.numel() < 2:
        return False
    return bool((value <= 0).all()) and _is_distribution(value.exp())
