"""Regularities in wrong numbers: a factor, a shift, one corner of the batch."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from rlcourse.checks.asking.case import Case
from rlcourse.checks.judging.comparing import Tolerance
from rlcourse.checks.telling.cutting import mask_in


@dataclass(frozen=True)
class Pair:
    """An expected and an actual tensor of one case, in float64 and of one shape."""

    case: Case
    expected: Tensor
    actual: Tensor

    def wrong(self) -> Tensor:
        """Which elements differ."""
        rule = Tolerance.of(self.case)
        difference = (self.expected - self.actual).abs()
        near = difference <= rule.relative * self.expected.abs() + rule.absolute
        return ~(near & self.expected.isfinite() | (self.expected == self.actual))

    def is_close(self, candidate: Tensor) -> bool:
        """Whether `candidate` reproduces the actual numbers."""
        return candidate.shape == self.actual.shape and Tolerance.of(self.case).close(
            candidate, self.actual
        )


def explain(pairs: list[Pair], right: list[Pair], yours: str, expected: str) -> str | None:
    """One sentence on what all pairs have in common, or None.

    `right` are pairs of the cases that agree: a factor, a shift or an order must hold there, too.
    """
    if any(p.actual.shape != p.expected.shape for p in pairs):
        return None
    every = pairs + [p for p in right if p.actual.shape == p.expected.shape]
    if not pairs:
        return None
    if factor := _factor(every):
        return factor.format(yours=yours, expected=expected)
    for test, words in REARRANGED:
        if all(map(test, pairs)) and all(test(p) or p.expected.numel() < 2 for p in right):
            return f"{yours} is {expected} {words}."
    results = {_fingerprint(pair) for pair in pairs}
    if sum(map(len, results)) >= ENOUGH and all(_constant_offset(pair) for pair in every):
        offsets = {round(_constant_offset(pair) or 0.0, 6) for pair in every}
        if len(offsets) == 1:
            return f"{yours} is {expected} plus {offsets.pop():g}."
    for test, words in PLACES:
        if all(test(pair) for pair in pairs):
            return f"{yours} is wrong {words}."
    for region, words in REGIONS:
        if len(results) >= ENOUGH and _is_where(region, every):
            return f"{yours} is wrong only {words}."
    return None


ENOUGH = 3  # results that have a regularity in common before it is one


def _factor(pairs: list[Pair]) -> str | None:
    ratios = [(pair, r) for pair in pairs if (r := _ratio(pair)) is not None]
    if not ratios or any(math.isnan(ratio) for _, ratio in ratios):
        return None
    if all(ratio == 0 for _, ratio in ratios):
        return "{yours} is always 0."
    first, results = ratios[0][1], len({_fingerprint(pair) for pair, _ in ratios})
    if all(math.isclose(ratio, first, rel_tol=1e-4) for _, ratio in ratios):
        if results < ENOUGH and not _is_telling(first):
            return None
        if math.isclose(first, -1, rel_tol=1e-6):
            return "{yours} has the opposite sign."
        return f"{{yours}} is {{expected}} times {first:.6g}{_named_constant(first)}."
    return None


def _fingerprint(pair: Pair) -> tuple[float, ...]:
    """The right result: a case that occurs twice is one piece of evidence."""
    return tuple(pair.expected.flatten().tolist())


def _ratio(pair: Pair) -> float | None:
    """The one factor between two tensors; NaN when there is none, None when any would do."""
    a, b = pair.expected.flatten(), pair.actual.flatten()
    if not b.isfinite().all():
        return math.nan
    if not a.any():
        return None if not b.any() else math.nan
    largest = a.abs().argmax()
    ratio = float(b[largest] / a[largest])
    return ratio if Tolerance.of(pair.case).close(ratio * a, b) else math.nan


def _is_telling(ratio: float) -> bool:
    """Whether a factor seen once is more than chance."""
    return any(math.isclose(abs(ratio), c, rel_tol=1e-6) for c in (0.5, 1, 2, 1 / math.log(2)))


def _named_constant(ratio: float) -> str:
    for value, words in ((1 / math.log(2), "1/ln 2: a logarithm to base 2"), (math.log(2), "ln 2")):
        if math.isclose(abs(ratio), value, rel_tol=1e-4):
            return f" ({words})"
    return ""


def _shifted(by: int) -> Callable[[Pair], bool]:
    def test(pair: Pair) -> bool:
        a, b = pair.expected, pair.actual
        if a.ndim == 0 or a.shape[-1] < 2:
            return False
        a, b = (a[..., :-1], b[..., 1:]) if by > 0 else (a[..., 1:], b[..., :-1])
        return bool(a.any()) and Tolerance.of(pair.case).close(a, b)

    return test


REARRANGED = (
    (_shifted(1), "moved one place to the right"),
    (_shifted(-1), "moved one place to the left"),
    (lambda p: p.expected.ndim > 0 and p.is_close(p.expected.flip(-1)), "in reverse order"),
    (
        lambda p: (
            p.expected.ndim > 0
            and Tolerance.of(p.case).close(*(t.flatten().sort()[0] for t in (p.expected, p.actual)))
        ),
        "with its elements in another order",
    ),
    (lambda p: p.is_close(p.expected.abs()), "without its sign"),
    (lambda p: p.is_close(p.expected.exp()), "put through an exponential"),
)


def _constant_offset(pair: Pair) -> float | None:
    offsets = (pair.actual - pair.expected).flatten()
    if not len(offsets) or not offsets.isfinite().all() or offsets.std(correction=0) > 1e-9:
        return None
    return float(offsets[0])


def _only(region: Callable[[Tensor], Tensor]) -> Callable[[Pair], bool]:
    """Whether all wrong elements lie where `region(mask)` is True, and some elements do not."""

    def test(pair: Pair) -> bool:
        mask = mask_in(pair.case.arguments)
        if mask is None or pair.actual.shape != mask.shape:
            return False
        inside = region(mask)
        return bool((pair.wrong() <= inside).all()) and not bool(inside.all())

    return test


def _last_real(mask: Tensor) -> Tensor:
    following = torch.cat([mask[:, 1:], torch.zeros_like(mask[:, :1])], dim=1)
    return mask & ~following


def _first(mask: Tensor) -> Tensor:
    return (torch.arange(mask.shape[1]) == 0).expand_as(mask)


PLACES = (
    (_only(lambda mask: ~mask), "only on padding, where 0 is expected"),
    (_only(_last_real), "only at the last real token of a row"),
    (_only(_first), "only at the first token of a row"),
    (_only(lambda mask: ~mask.all(1, keepdim=True).expand_as(mask)), "only in rows with padding"),
)


def _is_where(region: Callable[[Tensor], Tensor], pairs: list[Pair]) -> bool:
    """Whether all wrong elements lie in a region of the expected results, most of which is wrong,
    and some lie outside of it."""
    inside = outside = wrong = 0
    for pair in pairs:
        there, differs = region(pair.expected), pair.wrong()
        if bool((differs & ~there).any()):
            return False
        inside, outside = inside + int(there.sum()), outside + int((~there).sum())
        wrong += int(differs.sum())
    return outside >= ENOUGH and 2 * wrong > inside


def _end(last: bool, ndim: int, dim: int) -> Callable[[Tensor], Tensor]:
    """The first or last element, row or column of results with that many dimensions."""

    def region(expected: Tensor) -> Tensor:
        found = torch.zeros_like(expected, dtype=torch.bool)
        if expected.ndim == ndim and expected.numel():
            found.select(dim, -1 if last else 0).fill_(True)
        return found

    return region


ENDS = {"element": (1, 0), "row": (2, 0), "column": (2, 1)}
REGIONS = (
    (lambda x: x == 0, "where 0 is expected"),
    (lambda x: x < 0, "where a negative number is expected"),
    *((_end(False, *at), f"in the first {what}") for what, at in ENDS.items()),
    *((_end(True, *at), f"in the last {what}") for what, at in ENDS.items()),
)
