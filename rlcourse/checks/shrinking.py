"""The example that a failed check shows, made smaller: fewer rows, fewer tokens, rounder numbers.

A smaller case is taken only if it shows the same fault: the reference has a result as before, the
answer differs from it in the same ways, and a mistake that was named still has the answer's
numbers. Greedy, in a fixed order and with a fixed number of tries, so the same check shows the
same example.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from rlcourse.checks.calling import Case, Outcome, call, one_thread
from rlcourse.checks.comparing import compare_anything
from rlcourse.checks.exercise import Exercise, Mistake
from rlcourse.checks.failed import is_numeric
from rlcourse.checks.result import Example, Result
from rlcourse.checks.specs import Spec

MOST_TRIES = 60
SMALLER = ", made smaller"
DECIMALS = (0, 1)


def with_smaller_example(result: Result, exercise: Exercise, fn: Callable) -> Result:
    """The result, its example as small as it gets; one known from the lesson stays as it is."""
    example = result.example
    if example is None or exercise.observe or example.case.label.startswith("worked"):
        return result
    if any(isinstance(value, Spec) for value in example.case.arguments.values()):
        return result  # what stands behind it cannot be cut
    mistake = next((m for m in exercise.mistakes if m.name == result.mistake), None)
    with torch.random.fork_rng(devices=[]), one_thread():
        found = _Search(exercise, fn, mistake, example).smallest()
    return replace(result, example=found)


@dataclass
class _Search:
    exercise: Exercise
    fn: Callable
    mistake: Mistake | None
    example: Example
    tries: int = 0

    def __post_init__(self):
        self._before = self._look(self.example.case)

    def smallest(self) -> Example:
        """Cut until nothing can be cut, then round."""
        found = self.example
        for reductions in (_cuts, _roundings):
            while (smaller := self._first_good(found, reductions)) is not None:
                found = smaller
        return found

    def _first_good(self, example: Example, reductions) -> Example | None:
        for arguments in reductions(example.case.arguments):
            if self.tries >= MOST_TRIES:
                return None
            self.tries += 1
            label = example.case.label.removesuffix(SMALLER) + SMALLER
            case = replace(example.case, label=label, arguments=arguments)
            seen = self._look(case)
            if seen.fault == self._before.fault and seen.fault.differs:
                return Example(case, seen.differences)
        return None

    def _look(self, case: Case) -> "_Seen":
        expected, actual = (call(fn, case) for fn in (self.exercise.reference, self.fn))
        differences = compare_anything(expected, actual, case)
        fault = _Fault(
            differs=frozenset((d.kind, d.name) for d in differences),
            states=(_state(expected), _state(actual)),
            named=self.mistake is not None and self._is_theirs(case, actual, self.mistake),
        )
        return _Seen(fault, tuple(differences))

    @staticmethod
    def _is_theirs(case: Case, actual: Outcome, mistake: Mistake) -> bool:
        case = case if mistake.atol is None else replace(case, atol=mistake.atol)
        return not compare_anything(call(mistake.implementation, case), actual, case)


@dataclass(frozen=True)
class _Fault:
    """What must stay as it is."""

    differs: frozenset[tuple[str, str]]
    states: tuple[str, str]  # of the reference and of the answer
    named: bool


@dataclass(frozen=True)
class _Seen:
    fault: _Fault
    differences: tuple


def _state(outcome: Outcome) -> str:
    """The error, or whether all numbers are finite."""
    if outcome.error:
        return outcome.error.type
    values = outcome.value if isinstance(outcome.value, list | tuple) else [outcome.value]
    numbers = [*filter(is_numeric, values), *filter(is_numeric, outcome.gradients.values())]
    return "finite" if all(torch.as_tensor(n).isfinite().all() for n in numbers) else "not finite"


def _cuts(arguments: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Half of the rows or columns gone, or a quarter, … or one; the last ones first."""
    for axis in (0, 1):
        sizes = {_size(value, axis) for value in arguments.values()} - {0, 1}
        for size in sorted(sizes, reverse=True):
            chunk = size // 2
            while chunk:
                for end in range(size, chunk - 1, -chunk):
                    kept = [i for i in range(size) if not end - chunk <= i < end]
                    cut = {n: _taken(v, axis, size, kept) for n, v in arguments.items()}
                    if _is_sound(arguments, cut):
                        yield cut
                chunk //= 2


def _size(value: Any, axis: int) -> int:
    if isinstance(value, list) and axis == 0:
        return len(value)
    return value.shape[axis] if isinstance(value, Tensor) and value.ndim > axis else 0


def _taken(value: Any, axis: int, size: int, kept: list[int]) -> Any:
    if _size(value, axis) != size:
        return value
    if isinstance(value, list):
        return [value[i] for i in kept]
    return value.index_select(axis, torch.tensor(kept))


def _is_sound(before: dict[str, Any], after: dict[str, Any]) -> bool:
    """No completion has become empty, and what was a distribution is one still."""
    mask, cut = before.get("mask"), after.get("mask")
    if isinstance(mask, Tensor) and isinstance(cut, Tensor) and mask.ndim == 2:
        was_empty, is_empty = ((~m.bool().any(1)).any() for m in (mask, cut))
        if is_empty and not was_empty:
            return False
    return all(
        _is_distribution(after[name]) or not _is_distribution(value)
        for name, value in before.items()
    )


def _is_distribution(value: Any) -> bool:
    if not isinstance(value, Tensor) or not value.is_floating_point() or value.numel() < 2:
        return False
    return bool((value >= 0).all() and ((value.sum(-1) - 1).abs() < 1e-5).all())


def _roundings(arguments: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """All the numbers rounder, or those of one argument."""
    rounder = [
        {n: v.round(decimals=digits) for n, v in arguments.items() if _is_rough(v, digits)}
        for digits in DECIMALS
    ]
    for rounded in rounder:
        if len(rounded) > 1:
            yield {**arguments, **rounded}
    for rounded in rounder:
        for name, value in rounded.items():
            yield {**arguments, name: value}


def _is_rough(value: Any, digits: int) -> bool:
    """Whether a tensor has more decimals than that, and may lose them."""
    if not isinstance(value, Tensor) or not value.is_floating_point() or _is_distribution(value):
        return False
    # What rounds to nothing was small for a reason.
    return not torch.equal(value.round(decimals=digits), value) and bool(value.abs().max() > 0.1)
