"""Where an answer is wrong: "only where there is padding", say.

The cases only raise the suspicion. It is reported only if every failing case that was tried comes
out right when it is changed in this one respect, such as its padding made real.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import torch
from torch import Tensor

from rlcourse.checks.asking.case import Case
from rlcourse.checks.telling.cutting import (
    Arguments,
    flat,
    grid_in,
    is_sound,
    mask_in,
    nested,
    taken,
)

TRIED = 4  # failing cases that are changed, those with the fewest numbers
CROSSINGS = 6  # ways to change one of them


@dataclass(frozen=True)
class Property:
    """What arguments may have, and the same call without it."""

    words: str  # "there is padding"
    without: str  # "with every token real"
    has: Callable[[Arguments], bool]
    changed: Callable[[Arguments], Iterator[Arguments]]


@dataclass(frozen=True)
class Place:
    """A property that all failing cases have and some of the others lack."""

    property: Property
    cases: tuple[Case, ...]  # the failing ones

    def sentence(self, is_right: Callable[[Case], bool]) -> str | None:
        """The sentence, if the answer is right on the other side of all cases tried."""
        others = [other for case in self.cases[:TRIED] for other in self._other_side(case)]
        if not others or not all(map(is_right, others)):
            return None
        kind = self.property
        return (
            f"It is wrong only where {kind.words}: {kind.without}, the same calls come out right."
        )

    def _other_side(self, case: Case) -> Iterator[Case]:
        arguments = flat(case.arguments)
        for changed, _ in zip(self.property.changed(arguments), range(CROSSINGS), strict=False):
            if is_sound(arguments, changed) and not self.property.has(changed):
                added = {name: x for name, x in changed.items() if "." not in name}
                yield replace(case, label="", arguments=nested(changed, added | case.arguments))


def suspected(
    cases: tuple[Case, ...], failing: list[int], usual: Mapping[str, Any]
) -> Place | None:
    """The narrowest property that the failing cases have and others lack; `usual` has the defaults
    of arguments."""
    if len(failing) in (0, 1, len(cases)):
        return None
    narrowest, share = None, 2 * len(failing)
    for candidate in (*PROPERTIES, *_of_arguments(cases, failing, usual)):
        having = {i for i, case in enumerate(cases) if candidate.has(flat(case.arguments))}
        if having.issuperset(failing) and len(having) < min(len(cases), share):
            narrowest, share = candidate, len(having)
    return Place(narrowest, tuple(cases[i] for i in failing)) if narrowest else None


def _of_arguments(cases, failing: list[int], usual: Mapping[str, Any]) -> Iterator[Property]:
    """Of each argument with a default: that it has none of the values with which cases agree."""
    for name, default in usual.items():
        values = [case.arguments.get(name, default) for case in cases]
        if all(isinstance(value, float | int | str | None) for value in values):
            wrong = {values[i] for i in failing}
            right = {value for i, value in enumerate(values) if i not in failing}
            if not wrong & right and 1 in (len(wrong), len(right)):
                is_, value = ("is", *wrong) if len(wrong) == 1 else ("is not", *right)
                good = max(right, key=values.count)
                yield Property(
                    f"`{name}` {is_} {value!r}",
                    f"with `{name}={good!r}`",
                    partial(_is_none_of, name, default, right),
                    partial(_given, name, good),
                )


def _is_none_of(name: str, default: Any, right: set, given: Arguments) -> bool:
    return given.get(name, default) not in right


def _given(name: str, value: Any, given: Arguments) -> Iterator[Arguments]:
    yield {**given, name: value}


def _mask_has(test: Callable[[Tensor], Tensor]) -> Callable[[Arguments], bool]:
    return lambda given: (mask := mask_in(given)) is not None and bool(test(mask))


def _has(name: str, test: Callable[[Tensor], Tensor]) -> Callable[[Arguments], bool]:
    return lambda given: isinstance(x := given.get(name), Tensor) and bool(test(x))


def _made(name: str, change: Callable[[Tensor], Tensor]) -> Callable:
    """The arguments with one of them changed."""
    return lambda given: iter([{**given, name: change(given[name])}])


def _rows_filled(mask: Tensor) -> Tensor:
    return torch.where(mask.bool().any(1, keepdim=True), mask, torch.ones_like(mask))


def _shape(given: Arguments) -> tuple[int, int]:
    return (0, 1) if (table := grid_in(given)) is None else (table.shape[0], table.shape[1])


def _oblong(given: Arguments) -> Iterator[Arguments]:
    size, _ = _shape(given)
    if size > 1:
        yield taken(given, 1, size, list(range(size - 1)))
        yield taken(given, 0, size, list(range(size - 1)))


def _single_rows(given: Arguments) -> Iterator[Arguments]:
    rows, _ = _shape(given)
    yield from (taken(given, 0, rows, [i]) for i in range(rows))


PROPERTIES = (
    Property(
        "a row of the mask is empty",
        "with a token in every row",
        _mask_has(lambda m: (~m.any(dim=1)).any()),
        _made("mask", _rows_filled),
    ),
    Property(
        "there is padding",
        "with every token real",
        _mask_has(lambda m: ~m.all()),
        _made("mask", torch.ones_like),
    ),
    Property(
        "N equals T",
        "with one row or column fewer",
        lambda given: _shape(given)[0] == _shape(given)[1],
        _oblong,
    ),
    Property(
        "there is more than one row",
        "cut down to any one row",
        lambda given: _shape(given)[0] > 1,
        _single_rows,
    ),
    *(
        Property(
            f"{article} {name} is negative",
            "without their signs",
            _has(f"{name}s", lambda x: (x < 0).any()),
            _made(f"{name}s", torch.abs),
        )
        for article, name in (("a", "reward"), ("an", "advantage"))
    ),
)
