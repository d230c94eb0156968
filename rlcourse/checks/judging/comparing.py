"""Where two outcomes of the same case differ.

The expected side is the reference, or a declared mistake whose numbers are tried on for size.
"""

import math
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from rlcourse.checks.asking.calling import Outcome
from rlcourse.checks.asking.case import Case, largest_number

# Faults other than wrong numbers: they may come together with any mistake.
BESIDES = ("leak", "changed", "dtype")
# Faults that only the function's own process can see; the numbers do not show them.
UNPROVEN = {"leak": "a constant that stays one", "changed": "arguments left as they are"}
RELATIVE = {torch.float64: 1e-6, torch.float32: 1e-4}
# What a constant in float32 among numbers in float64 costs, `torch.where(a > 0, 1.2, 0.8)` say:
# nothing to speak of, but more than 1e-6 of a mean whose terms cancel.
OF_A_CONSTANT = 1e-7
FEW = 200  # numbers, which Python compares in less time than torch


@dataclass(frozen=True)
class Difference:
    """One way in which an outcome is not as expected.

    ``kind``: error, type, structure, shape, dtype, value, gradient, leak (a gradient in
    a constant), changed (an argument), after, unrepeatable, unvaried (another seed, the same).
    ``name`` is the argument or the place in the result that it concerns.
    """

    kind: str
    name: str = ""
    expected: Any = None
    actual: Any = None


def compare_anything(
    expected: Outcome, actual: Outcome, case: Case, observe: Callable | None = None
) -> list[Difference]:
    """All differences; an answer that no comparison foresaw just differs."""
    try:
        return list(differences(expected, actual, case, observe))
    except Exception as error:
        return incomparable(error)


def is_apart(
    expected: Outcome,
    actual: Outcome,
    case: Case,
    observe: Callable | None,
    counts: Callable[[Difference], bool],
) -> bool:
    """Whether some difference counts; no more is looked for than the first."""
    try:
        return any(map(counts, differences(expected, actual, case, observe)))
    except Exception as error:
        return bool(incomparable(error))


def incomparable(error: Exception) -> list[Difference]:
    return [Difference("incomparable")]


def differences(
    expected: Outcome, actual: Outcome, case: Case, observe: Callable | None = None
) -> Iterator[Difference]:
    """None when `actual` does what `expected` did.

    `observe(case, value)` turns a random value into the statistics that are compared, by name.
    """
    if case.raises:
        kinds = [outcome.error.type if outcome.error else None for outcome in (expected, actual)]
        if kinds[0] != kinds[1]:
            yield Difference("error", "", *kinds)
        return
    if expected.error or actual.error:
        yield from _compare_errors(expected, actual)
        return
    if False in (expected.repeatable, actual.repeatable):
        if expected.repeatable != actual.repeatable and actual.repeatable is not None:
            yield Difference("unrepeatable")
        return
    rule = Tolerance.of(case)
    found = list(compare_values(expected.value, actual.value, rule, "", observe is not None))
    yield from found
    if observe and not found:
        seen = observe(case, expected.value), observe(case, actual.value)
        yield from compare_values(*seen, rule, "")
    for name in case.compared:
        wanted, got = (_gradient(outcome, name, case) for outcome in (expected, actual))
        if not (rule.close(wanted, got) or Tolerance.of(case, expected.value).close(wanted, got)):
            yield Difference("leak" if name in case.constants else "gradient", name, wanted, got)
    for name in sorted({*expected.changed} ^ {*actual.changed}):
        yield Difference("changed", name)
    for name, wanted in expected.after.items():
        for d in compare_values(wanted, actual.after.get(name), rule, name):
            yield Difference("after", name, d.expected, d.actual)


def _compare_errors(expected: Outcome, actual: Outcome) -> list[Difference]:
    """Two crashes are the same when type and message are, sizes left aside."""
    texts = [
        o.error and f"{o.error.type}: {re.sub(r'[0-9]+', '#', o.error.message)}"
        for o in (expected, actual)
    ]
    return [] if texts[0] == texts[1] else [Difference("error", "", *texts)]


def _gradient(outcome: Outcome, name: str, case: Case) -> Tensor:
    gradient = outcome.gradients.get(name)
    return torch.zeros_like(case.arguments[name]) if gradient is None else gradient


def compare_values(expected: Any, actual: Any, rule, name, types_only=False):
    """Where two results differ, each difference with its place in the result."""
    if type(expected) is float and type(actual) is int:
        yield from compare_values(expected, float(actual), rule, name, types_only)
    elif type(expected) is not type(actual):
        # If a text may be missing, None is an answer, and is shown as one.
        optional = {type(expected), type(actual)} == {str, type(None)}
        yield Difference("value" if optional else "type", name, expected, actual)
    elif isinstance(expected, list | tuple):
        if len(expected) != len(actual):
            yield Difference("structure", name, expected, actual)
        else:
            for i, pair in enumerate(zip(expected, actual, strict=True)):
                yield from compare_values(*pair, rule, f"{name}[{i}]", types_only)
    elif isinstance(expected, dict) and expected.keys() == actual.keys():
        for key in expected:
            where = f"{name}[{key!r}]" if name else str(key)
            yield from compare_values(expected[key], actual[key], rule, where, types_only)
    elif isinstance(expected, Tensor):
        yield from _compare_tensors(expected, actual, rule, name, types_only)
    elif isinstance(expected, float):
        numbers = (torch.tensor(number, dtype=torch.float64) for number in (expected, actual))
        if not types_only and not rule.close(*numbers):
            yield Difference("value", name, expected, actual)
    elif not types_only and expected != actual:
        yield Difference("value", name, expected, actual)


def _compare_tensors(expected, actual, rule, name, types_only):
    if expected.shape != actual.shape:
        yield Difference("shape", name, expected, actual)
        return
    if expected.dtype != actual.dtype:
        if not (rule.any_float and {expected.dtype, actual.dtype} <= RELATIVE.keys()):
            yield Difference("dtype", name, expected, actual)
        rule = rule.loosened()
    if not types_only and not rule.close(expected, actual):
        yield Difference("value", name, expected, actual)


def negative(outcome: Outcome) -> Outcome:
    """The outcome with the sign of its value and gradients flipped, if they have one."""
    value = outcome.value
    return replace(
        outcome,
        value=-value if isinstance(value, Tensor) and value.is_floating_point() else value,
        gradients={k: None if g is None else -g for k, g in outcome.gradients.items()},
    )


@dataclass(frozen=True)
class Tolerance:
    """``|a − b| ≤ relative · |b| + absolute``, elementwise; NaN equals NaN.

    A constant rounded to float32 is not a mistake: numbers that differ by less than 1e-7, and by
    less than 1e-4 of their size, are close as well.
    """

    relative: float
    absolute: float
    any_float: bool = False  # float32 for float64 will do: nothing here is differentiated

    @classmethod
    def of(cls, case: Case, value: Any = None) -> "Tolerance":
        """1e-6 relative in float64; looser where the case holds float32 or says so itself.

        With `value` it is for the gradient of that: what is left where large terms cancel is none.
        """
        any_float = not (case.compared or case.exact_dtype)
        if case.atol is not None:
            return cls(0.0, case.atol, any_float)
        single, largest = case.scale
        largest = max(largest, largest_number(value))
        relative = RELATIVE[torch.float32 if single else torch.float64]
        absolute = relative**2 * max(1.0, largest) * (100 if single else 1)
        return cls(relative, absolute, any_float)

    def loosened(self) -> "Tolerance":
        """For a result in the wrong precision, so that only the precision counts as wrong."""
        relative = max(self.relative, RELATIVE[torch.float32])
        return replace(self, relative=relative, absolute=max(self.absolute, 1e-6))

    def close(self, expected: Tensor, actual: Tensor) -> bool:
        if expected.shape != actual.shape:
            return False
        if expected.dtype == actual.dtype and torch.equal(expected, actual):
            return True  # to the last bit, as nearly all right answers are
        a, b = actual.double(), expected.double()  # the second one sets the scale
        if a.numel() <= FEW:
            return all(map(self._near, a.flatten().tolist(), b.flatten().tolist()))
        near = torch.isclose(a, b, self.relative, self.absolute, equal_nan=True)
        rounded = torch.isclose(a, b, RELATIVE[torch.float32], 0) & ((a - b).abs() < OF_A_CONSTANT)
        return bool((near | rounded).all())

    def _near(self, a: float, b: float) -> bool:
        """The same for two numbers."""
        apart, size = abs(a - b), abs(b)
        return (
            a == b
            or apart <= self.relative * size + self.absolute < math.inf
            or (apart < OF_A_CONSTANT and apart <= RELATIVE[torch.float32] * size)
            or (a != a and b != b)
        )
