"""Where a reference compares, and whether some case shows what it does at equality.

``<`` for ``<=`` is wrong only at equality, and a tolerance for ``==`` only close to it: unless a
case is there, the check accepts both. So each comparison of the reference, and of the functions
of its module that it calls, is changed in turn, and some case must tell the difference. If none
can, the exercise's module says why, in ``boundaries``.

``clamp``, ``minimum`` and ``maximum`` compare as well, but whichever side they take at equality,
the number is the same: they need no such case.
"""

import ast
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from itertools import product
from typing import Any

import torch

from rlcourse.checks.asking.calling import call, one_thread
from rlcourse.checks.exercise import Exercise
from rlcourse.checks.judging.exam import Exam, judge
from rlcourse.checks.telling.changes import Change, filled, places
from rlcourse.checks.telling.rewriting import Source

NEAR = 1e-3  # numbers that are this close are equal to a tolerance
ANY = "*"  # in `boundaries`: every comparison of the function
TURNED = {ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt}
SIGNS = {ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!="}


@dataclass(frozen=True)
class Changed:
    """A reference with one of its comparisons changed."""

    code: str  # the comparison
    place: str
    words: str  # what stands in its place
    function: Callable


def unshown(exercise: Exercise, seeds: Iterable[int], but: Collection[str]) -> Iterator[str]:
    """A sentence for each comparison whose behavior at equality the cases do not show.

    Left out are comparisons in functions that the reference calls and that are named in `but`.
    """
    if exercise.suspects:  # what a test compares, it asserts
        return
    excused, needless = {code for code, _ in exercise.boundaries}, dict(exercise.boundaries)
    changes = list(changed(exercise.reference, but))
    said: dict[str, None] = {}
    for seed, hidden in product(seeds if changes else (), (False, True)):
        with one_thread(), torch.random.fork_rng(devices=[]):
            exam = Exam(exercise, seed, hidden)
            missed = [change for change in changes if not _is_told(exam, change)]
        for change in missed:
            if excuses := excused & {change.code, ANY}:
                needless = {code: why for code, why in needless.items() if code not in excuses}
            else:
                said[
                    f"no case tells {change.words} in `{change.code}` ({change.place}): add one at "
                    "equality that does, or say in `boundaries` why none can."
                ] = None
    yield from said
    for code in needless:
        yield (
            f"`boundaries` excuses `{code}`, which is not a comparison of the function, or one "
            "that the cases cover already."
        )


def _is_told(exam: Exam, change: Changed) -> bool:
    return any(
        judge(exam.exercise, case, expected, call(change.function, case))
        for case, expected in zip(exam.cases, exam.expected, strict=True)
    )


def changed(reference: Callable, but: Collection[str] = ()) -> Iterator[Changed]:
    """The reference with each of its comparisons changed, one at a time; and likewise with those in
    functions of its module that it calls."""
    try:
        source = Source(reference, set(but) - {reference.__name__})
    except ValueError:
        return
    for number, (tree, fn) in enumerate(zip(source.trees, source.functions, strict=True)):
        for parent, field, node in places(tree):
            for words, code, new in _instead(node):
                change = Change(0, parent, field, node, new)
                function = source.changed(number, change, _is_near_=_is_near)
                assert function is not None
                place = f"{fn.__name__}, line {source.line(number, change)[0]}"
                yield Changed(code, place, words, function)


def _instead(node: ast.AST) -> Iterator[tuple[str, str, ast.expr]]:
    """(in words, the comparison, what is computed instead) for each change to a comparison."""
    if not isinstance(node, ast.Compare):
        return
    sides = [node.left, *node.comparators]
    for i, op in enumerate(node.ops):
        sign, (a, b) = SIGNS.get(type(op)), sides[i : i + 2]
        code = ast.unparse(ast.Compare(a, [op], [b]))
        if type(op) in TURNED:
            other = TURNED[type(op)]
            ops = [*node.ops[:i], other(), *node.ops[i + 1 :]]
            yield f"`{SIGNS[other]}` for `{sign}`", code, ast.Compare(node.left, ops, sides[1:])
        elif sign and len(node.ops) == 1:
            equal = isinstance(op, ast.Eq)
            never = "X & False" if equal else "X | True"
            yield f"{not equal} for `{sign}`", code, filled(never, X=node)
            near = filled(f"_is_near_(A, B, {equal})", A=a, B=b)
            yield f"a tolerance of {NEAR:g} for `{sign}`", code, near


def _is_near(a: Any, b: Any, equal: bool) -> Any:
    """A comparison with a tolerance, which only floating-point numbers have."""
    if not any(isinstance(x, float) or getattr(x, "is_floating_point", bool)() for x in (a, b)):
        raise TypeError("these are compared exactly")  # any case tells that
    near = (abs(a - b) <= NEAR) | (a == b)
    return near if equal else near ^ True
