"""The example that a failed check shows, made smaller.

A smaller case is taken only if it shows the same fault: the reference has a result as before, the
answer differs from it in the same ways, and a mistake that was named still has the answer's
numbers. Greedy, in a fixed order and with a fixed number of tries, so the same check shows the
same example.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import torch

from rlcourse.checks.asking.calling import Outcome, call, one_thread
from rlcourse.checks.asking.case import Case
from rlcourse.checks.exercise import Exercise, Mistake
from rlcourse.checks.judging.comparing import compare_anything
from rlcourse.checks.judging.failed import is_numeric
from rlcourse.checks.telling.cutting import cuts
from rlcourse.checks.telling.result import Example, Result

MOST_TRIES = 60


def with_smaller_example(result: Result, exercise: Exercise, fn: Callable) -> Result:
    """The result, its example as small as possible; one known from the lesson stays as it is."""
    example = result.example
    if example is None or exercise.observe or example.case.label.startswith("worked"):
        return result
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
        """Cut until nothing can be cut."""
        found = self.example
        while (smaller := self._first_good(found)) is not None:
            found = smaller
        return found

    def _first_good(self, example: Example) -> Example | None:
        for arguments in cuts(example.case.arguments):
            if self.tries >= MOST_TRIES:
                return None
            self.tries += 1
            case = replace(example.case, arguments=arguments)
            seen = self._look(case)
            if seen.fault == self._before.fault and seen.fault.differs:
                return Example(case, seen.differences, smaller=True)
        return None

    def _look(self, case: Case) -> "_Seen":
        expected, actual = (call(fn, case) for fn in (self.exercise.reference, self.fn))
        differences = compare_anything(expected, actual, case)
        fault = _Fault(
            differs=frozenset((d.kind, _argument(d.name)) for d in differences),
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


def _argument(name: str) -> str:
    """The argument that a difference concerns; not which item of a list, which a cut may move."""
    return "" if name.startswith("[") else name


def _state(outcome: Outcome) -> str:
    """The error, or whether all numbers are finite."""
    if outcome.error:
        return outcome.error.type
    values = outcome.value if isinstance(outcome.value, list | tuple) else [outcome.value]
    numbers = [*filter(is_numeric, values), *filter(is_numeric, outcome.gradients.values())]
    return "finite" if all(torch.as_tensor(n).isfinite().all() for n in numbers) else "not finite"
