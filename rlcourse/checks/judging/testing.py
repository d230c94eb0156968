"""Exercises in which the student is the grader, and writes tests in place of the function.

A test takes an implementation and fails, with ``assert``, if that is wrong. It is tried on right
implementations and on wrong ones, the declared mistakes of another exercise, each behind a
``StandIn``; what counts is which ones it rejects. After Wrenn and Krishnamurthi 2019 (Examplar).
"""

import inspect
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from rlcourse.checks.asking import stand_in
from rlcourse.checks.asking.calling import Failure, Outcome, as_data
from rlcourse.checks.asking.case import Case, tensors_in
from rlcourse.checks.asking.specs import Spec
from rlcourse.checks.judging.case_sampler import CaseSampler

if TYPE_CHECKING:
    from rlcourse.checks.exercise import Exercise, Mistake

ACCEPTS, REJECTS, LATE = "accepts", "rejects", "runs out of time"
RIGHT = "a right one: "  # how the labels of right implementations begin
LARGEST_NUMBER = 2**31 - 1
MOST_NUMBERS = 10_000  # in the arguments of one call, so that no test takes too long
PLAIN = (bool, int, float, str, type(None))

_functions: dict[int, Callable] = {}  # what the numbers of the stand-ins mean, in this process


@dataclass(frozen=True)
class Suspects:
    """Implementations of one exercise: right ones by a description, wrong ones by their names.

    Pairs are (visible, hidden): the points are for the hidden ones.
    """

    exercise: "Exercise"
    right: tuple[dict[str, Callable], dict[str, Callable]]
    wrong: tuple[tuple[str, ...], tuple[str, ...]]

    def cases(self, draw: CaseSampler) -> Iterator[Case]:
        """One case an implementation, the right ones first; their numbers are drawn at random."""
        reference = self.exercise.reference
        for label, function in self._chosen(draw.hidden).items():
            number = draw.integer(0, LARGEST_NUMBER - 1)
            yield Case(label, {reference.__name__: standing_for(function, number, reference)})

    def _chosen(self, hidden: bool) -> dict[str, Callable]:
        right = {RIGHT + words: function for words, function in self.right[hidden].items()}
        return right | {name: self.mistake(name).implementation for name in self.wrong[hidden]}

    def mistake(self, name: str) -> "Mistake":
        return next(m for m in self.exercise.mistakes if m.name == name)


def verdict(outcome: Outcome) -> Outcome:
    """What a test said, whatever else it did: any exception rejects, as it does for pytest."""
    if outcome.error is None:
        said = REJECTS if outcome.value == REJECTS else ACCEPTS
    else:  # a process that ended, or was never begun, has rejected nothing
        said = LATE if outcome.error.type in ("TimeoutError", "NoAnswer") else REJECTS
    return Outcome(value=said, repeatable=outcome.repeatable)


def credit(cases: tuple[Case, ...], failing: list[int]) -> float:
    """The share of right ones accepted times the share of wrong ones rejected: a test that says
    the same of all of them earns nothing."""
    judged_well = set(range(len(cases))) - set(failing)
    right = {i for i, case in enumerate(cases) if case.label.startswith(RIGHT)}
    wrong = set(range(len(cases))) - right
    return len(judged_well & right) / len(right) * len(judged_well & wrong) / len(wrong)


def explain(
    suspects: Suspects,
    cases: tuple[Case, ...],
    outcomes: list[Outcome],
    failing: list[int],
    hidden: bool = False,
) -> list[str]:
    """Which right ones were rejected and which wrong ones let through, in sentences.

    What a test says of a hidden implementation may hold its numbers, and is not shown.
    """
    right = [i for i, case in enumerate(cases) if case.label.startswith(RIGHT)]
    rejected = [i for i in failing if i in right]
    missed = [i for i in failing if i not in right]
    sentences = []
    if all(o.error and o.error.type == "TypeError" and not o.error.line for o in outcomes):
        name = suspects.exercise.name
        sentences.append(f"It takes one argument, `{name}`, and is called by that name.")
    if rejected:
        first = rejected[0]
        names = _listed(cases[i].label.removeprefix(RIGHT) for i in rejected)
        sentences.append(
            f"It rejects {len(rejected)} of {len(right)} right implementations: {names}."
            + _complaint(outcomes[first].error, hidden)
        )
    if missed:
        names = _listed(cases[i].label for i in missed)
        count = f"{len(missed)} of {len(cases) - len(right)} wrong ones"
        sentences.append(f"It lets {count} through: {names}.")
        sentences.append(f"About the first: {suspects.mistake(cases[missed[0]].label).diagnosis}")
    if any(isinstance(outcome.value, bool | Tensor) for outcome in outcomes):
        sentences.append("The value that a test returns is ignored: reject with `assert`.")
    return sentences


def _listed(names) -> str:
    return "; ".join(f"“{name}”" for name in names)


def _complaint(error: Failure | None, hidden: bool) -> str:
    if error is None or not error.line:
        return ""
    text = "" if hidden else error.message[:300].rstrip(".")
    if error.type == "AssertionError":
        said = f", which says “{text}”" if text else ""
    else:
        said = f", with {error.type}: {text}" if text else f", with {error.type}"
    line = f"your line {error.line_number}, `{error.line[:100]}`"
    line += f", called from your line {error.called_from}" if error.called_from else ""
    return f" The first is rejected by {line}{said}."


# The side that knows the implementations


def standing_for(function: Callable, number: int, reference: Callable) -> Spec:
    """A stand-in for `function`, called as the `reference` is; calls of it give the number."""
    known_as(number, function)
    parameters = list(inspect.signature(reference).parameters)
    options = {"number": number, "name": reference.__name__, "parameters": parameters}
    return Spec("stand_in", options)


def known_as(number: int, function: Callable) -> None:
    """From now on calls of that number, in this process, are calls of the function."""
    _functions[number] = function


def answer(
    number: int,
    arguments: dict[str, Any],
    tracked: tuple[str, ...] = (),
    weights: list | None = None,
    numbers: frozenset[int] | None = None,
) -> dict[str, Any]:
    """What the implementation of that number computes: its value, and which results have a graph;
    with `weights`, the gradients of the results' weighted sum in the `tracked` arguments.

    Nothing in a call is trusted: a malformed one, or one that asks for a number that is not in
    `numbers`, is answered with an error, as is whatever goes wrong.
    """
    try:
        if number not in _functions or (numbers is not None and number not in numbers):
            raise LookupError("there is no such implementation here")
        _verify(arguments, tracked)
        with warnings.catch_warnings(), torch.enable_grad():
            warnings.simplefilter("ignore")
            return _computed(_functions[number], arguments, tracked, weights)
    except Exception as error:
        return {"error": Failure(type(error).__name__, str(error)[:1000])}


def _computed(function: Callable, arguments, tracked, weights) -> dict[str, Any]:
    leaves = {name: arguments[name].detach().clone().requires_grad_() for name in tracked}
    given = {n: a.clone() if isinstance(a, Tensor) else a for n, a in arguments.items()}
    given |= {name: leaf.clone() for name, leaf in leaves.items()}
    value = function(**given)
    results = list(tensors_in(value))
    if weights is None:
        return {"value": as_data(value), "graph": [r.requires_grad for r in results]}
    pairs = [(r, w) for r, w in zip(results, weights, strict=True) if r.requires_grad]
    asked = [(r, torch.zeros_like(r) if w is None else w) for r, w in pairs]
    found = torch.autograd.grad(
        [r for r, _ in asked], list(leaves.values()), [w for _, w in asked], allow_unused=True
    )
    return {"gradients": [None if g is None else g.detach() for g in found]}


def _verify(arguments: Any, tracked: Any) -> None:
    if not isinstance(arguments, dict) or not isinstance(tracked, list | tuple):
        raise TypeError("that is not a valid call")
    values = list(_leaves(list(arguments.values())))
    if not all(isinstance(v, Tensor) or type(v) in PLAIN for v in values):
        raise TypeError("an implementation takes tensors, numbers and text")
    if sum(v.numel() for v in values if isinstance(v, Tensor)) > MOST_NUMBERS:
        raise ValueError(f"a call may pass at most {MOST_NUMBERS} numbers")
    if not all(isinstance(arguments.get(name), Tensor) for name in tracked):
        raise TypeError("only a tensor has a gradient")


def _leaves(value: Any) -> Iterator[Any]:
    if isinstance(value, list | tuple) and len(value) <= MOST_NUMBERS:
        for item in value:
            yield from _leaves(item)
    else:
        yield value


class Answers:
    """What an exam's stand-ins may ask in a graded run, and how often."""

    MOST = 20_000

    def __init__(self, cases: tuple[Case, ...]):
        specs = (spec for case in cases for spec in case.arguments.values())
        self.numbers = frozenset(s.options["number"] for s in specs if isinstance(s, Spec))

    def __call__(self, call: dict[str, Any], asked_before: int) -> dict[str, Any]:
        if asked_before >= self.MOST:
            return {"error": Failure("RuntimeError", "that is more calls than any test needs")}
        number, arguments = call.get("call"), call.get("arguments")
        if type(number) is not int or not isinstance(arguments, dict):
            return {"error": Failure("TypeError", "that is not a valid call")}
        return answer(number, arguments, call.get("tracked", ()), call.get("weights"), self.numbers)


stand_in.ask_through(answer)
