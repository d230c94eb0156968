"""A failed check: what was asked, what came back, and how it differs from what is right."""

import re
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from rlcourse.checks.asking.calling import Facts, Outcome
from rlcourse.checks.asking.case import Case
from rlcourse.checks.exercise import Exercise
from rlcourse.checks.judging.comparing import BESIDES, Difference
from rlcourse.checks.telling import patterns
from rlcourse.checks.telling.show import size_of


@dataclass(frozen=True)
class FailedCheck:
    """A failed check: what was asked, expected and answered, and how they differ."""

    exercise: Exercise
    facts: Facts
    cases: tuple[Case, ...]
    expected: list[Outcome]
    outcomes: list[Outcome]
    differences: list[list[Difference]]
    hidden: bool = False
    aside: frozenset[int] = frozenset()  # cases that are ignored

    @property
    def failing(self) -> list[int]:
        return [i for i, found in enumerate(self.differences) if found]

    @property
    def wrong(self) -> list[int]:
        """Failing cases whose numbers differ, whatever else may be wrong."""
        return [i for i in self.failing if any(d.kind not in BESIDES for d in self.differences[i])]

    @property
    def smallest(self) -> int:
        """The failing case to show: with a result, known from the lesson, with few numbers.

        If the value is wrong on some and only the gradient on others, it is one of the former.
        """
        telling = [i for i in self.wrong if not self.is_broken(i)]
        valued = [i for i in telling if any(d.kind != "gradient" for d in self.differences[i])]
        chosen = valued or telling or self.wrong or self.failing
        return min(chosen, key=lambda i: _familiarity(self.cases[i]))

    def is_broken(self, i: int) -> bool:
        """Whether the call raised (or should have), or gave NaN where a number is expected."""
        if self.outcomes[i].error or self.cases[i].raises:
            return True
        return any(
            isinstance(d.actual, Tensor | float) and _is_unexpectedly_infinite(d)
            for d in self.differences[i]
            if d.kind in ("value", "gradient")
        )

    @property
    def is_told_by_errors(self) -> bool:
        """Whether most failing calls raise, so that there are hardly any numbers to explain."""
        raising = [i for i in self.failing if self.outcomes[i].error]
        return 2 * len(raising) >= len(self.failing)

    def without(self, aside: frozenset[int]) -> "FailedCheck":
        """The same check without a word on the cases `aside`."""
        kept = [[] if i in aside else found for i, found in enumerate(self.differences)]
        return replace(self, differences=kept, aside=self.aside | aside)

    def found(self, *kinds: str) -> list[tuple[int, Difference]]:
        """(case index, difference) for every difference of these kinds."""
        return [
            (i, d) for i, found in enumerate(self.differences) for d in found if d.kind in kinds
        ]

    def pairs(self, kind: str, name: str | None = None) -> list[patterns.Pair]:
        """Expected and actual tensors of the failing cases, one per difference of this kind."""
        return [
            patterns.Pair(self.cases[i], *map(as_tensor, (d.expected, d.actual)))
            for i, d in self.found(kind)
            if name in (None, d.name) and is_numeric(d.expected) and is_numeric(d.actual)
        ]

    def right_pairs(self, kind: str, name: str | None = None) -> list[patterns.Pair]:
        """The same on the cases that agree, where a statement about the answer must hold, too.

        Only for places of the result, or arguments, of which another case differs.
        """
        if self.exercise.observe:
            return []  # of two random results, only statistics have to agree
        names = {d.name for _, d in self.found(kind) if name in (None, d.name)}
        wrong = {i for i, d in self.found(kind, "error", "type", "structure", "shape")}
        right = set(range(len(self.cases))) - wrong - self.aside
        sides = (
            (self.cases[i], *(_part(o, kind, n) for o in (self.expected[i], self.outcomes[i])))
            for i in sorted(right)
            for n in names
        )
        return [
            patterns.Pair(case, as_tensor(wanted), as_tensor(got))
            for case, wanted, got in sides
            if is_numeric(wanted) and is_numeric(got)
        ]


def _part(outcome: Outcome, kind: str, name: str) -> Any:
    """What a difference of this kind and name would hold of the outcome."""
    if kind == "gradient":
        return outcome.gradients.get(name)
    value = outcome.value
    for place in re.findall(r"\[(\d+)\]", name):
        if not isinstance(value, list | tuple) or int(place) >= len(value):
            return None
        value = value[int(place)]
    return value


def _is_unexpectedly_infinite(d: Difference) -> bool:
    """NaN where none is expected, or infinity where numbers are."""
    actual, expected = torch.as_tensor(d.actual), torch.as_tensor(d.expected)
    if expected.isfinite().all():
        return not actual.isfinite().all()
    return bool(actual.isnan().any() and not expected.isnan().any())


def _familiarity(case: Case) -> tuple[bool, bool, int]:
    return not case.label.startswith("worked"), case.edge, size_of(case.arguments)


def is_numeric(value: Any) -> bool:
    return isinstance(value, Tensor | float | int) and not isinstance(value, bool)


def as_tensor(value: Any) -> Tensor:
    return torch.as_tensor(value).double()
