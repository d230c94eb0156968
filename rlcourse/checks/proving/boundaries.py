"""Where a reference compares, and whether some case shows what it does at equality.

``<`` for ``<=`` is wrong only at equality, and a tolerance for ``==`` only close to it: unless a
case is there, the check accepts both. So each comparison of the reference, and of the functions
of its module that it calls, is changed in turn, and some case must tell the difference. If none
can, the exercise's page says why, under ``# Boundaries``.

``clamp``, ``minimum`` and ``maximum`` compare as well, but whichever side they take at equality,
the number is the same: they need no such case.
"""

import ast
import inspect
import operator
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import product
from types import FunctionType
from typing import Any

import torch
from torch import Tensor

from rlcourse.checks.asking.calling import call, one_thread
from rlcourse.checks.exercise import Exercise
from rlcourse.checks.judging.exam import Exam, judge
from rlcourse.checks.proving.mutants import LOOPS, EndlessLoop, source_tree

NEAR = 1e-3  # numbers that are this close are equal to a tolerance
WATCH = "_compared_"  # the name of the function that replaces comparisons
ANY = "*"  # under # Boundaries: every comparison of the function

Compare = Callable[[Any, Any], Any]
SIGNS = {"Lt": "<", "LtE": "<=", "Gt": ">", "GtE": ">=", "Eq": "==", "NotEq": "!="}
# A method or a function of torch by one of these names compares, too.
METHODS = {"lt": "<", "le": "<=", "gt": ">", "ge": ">=", "eq": "==", "ne": "!="}
COMPARE: dict[str, Compare] = {sign: getattr(operator, name) for name, sign in METHODS.items()}
AT_EQUALITY: dict[str, tuple[str, Compare]] = {
    "<": ("`<=` for `<`", operator.le),
    "<=": ("`<` for `<=`", operator.lt),
    ">": ("`>=` for `>`", operator.ge),
    ">=": ("`>` for `>=`", operator.gt),
    "==": ("False for `==`", lambda a, b: (a == b) & False),
    "!=": ("True for `!=`", lambda a, b: (a != b) | True),
}
NEARBY: dict[str, tuple[str, Compare]] = {
    "==": (f"a tolerance of {NEAR:g} for `==`", lambda a, b: (abs(a - b) <= NEAR) | (a == b)),
    "!=": (f"a tolerance of {NEAR:g} for `!=`", lambda a, b: (abs(a - b) > NEAR) & (a != b)),
}


@dataclass
class Comparison:
    """One comparison in the source, and what a run of the cases has shown about it."""

    code: str
    sign: str
    function: str
    line: int
    floats: bool = False  # whether one side was a floating-point number
    equal_on: dict[str, None] = field(default_factory=dict)  # labels of cases at equality

    def note(self, label: str, a: Any, b: Any) -> None:
        equal = a == b
        if bool(equal.any()) if isinstance(equal, Tensor) else bool(equal):
            self.equal_on[label] = None
        self.floats = self.floats or _is_float(a) or _is_float(b)

    def changes(self) -> Iterator[tuple[str, Compare]]:
        """(in words, what is computed instead) of each change that some case must tell."""
        yield AT_EQUALITY[self.sign]
        if self.floats and self.sign in NEARBY:
            yield NEARBY[self.sign]


def _is_float(value: Any) -> bool:
    return isinstance(value, float) or (isinstance(value, Tensor) and value.is_floating_point())


class Watched:
    """A function whose comparisons are watched; and, one at a time, changed."""

    def __init__(self, function: Callable):
        self.name = function.__name__
        self.comparisons: list[Comparison] = []
        self.label = ""  # of the case that is being run
        self._changed: tuple[int, Compare] | None = None
        self._left = LOOPS
        self._function = self._rebuilt(inspect.unwrap(function))

    def __call__(self, **arguments: Any) -> Any:
        self._left = LOOPS
        return self._function(**arguments)

    def with_change(self, number: int, instead: Compare) -> Callable:
        """The function with that comparison changed."""

        def changed(**arguments: Any) -> Any:
            self._changed = number, instead
            try:
                return self(**arguments)
            finally:
                self._changed = None

        return changed

    def _compare(self, number: int, a: Any, b: Any) -> Any:
        self._left -= 1
        if self._left < 0:
            raise EndlessLoop
        if self._changed and self._changed[0] == number:
            return self._changed[1](a, b)
        if not self._changed:
            self.comparisons[number].note(self.label, a, b)
        return COMPARE[self.comparisons[number].sign](a, b)

    def _rebuilt(self, function: Callable) -> Callable:
        """The function in its own namespace, with the functions of its module that it calls.

        Without source, or where it reads variables of another function, it is left as it is.
        """
        if source_tree(function) is None:
            return function
        namespace = {**function.__globals__, WATCH: self._compare}
        waiting, done = [function], set()
        while waiting:
            fn = waiting.pop()
            tree = source_tree(fn)
            if tree is None or fn in done:
                continue
            done.add(fn)
            first = fn.__code__.co_firstlineno
            tree = _Watching(self.comparisons, fn.__name__, first).visit(tree)
            module = ast.fix_missing_locations(ast.Module([tree], type_ignores=[]))
            exec(compile(module, f"<{fn.__name__}, watched>", "exec"), namespace)
            names = (function.__globals__.get(name) for name in fn.__code__.co_names)
            called = (inspect.unwrap(f) for f in names if isinstance(f, FunctionType))
            waiting += [f for f in called if f.__module__ == function.__module__]
        return namespace[self.name]


class _Watching(ast.NodeTransformer):
    """Every comparison becomes a call of WATCH with its number."""

    def __init__(self, found: list[Comparison], function: str, first_line: int):
        self.found, self.function, self.first_line = found, function, first_line

    def visit_Compare(self, node: ast.Compare) -> ast.expr:
        sides = [node.left, *node.comparators]
        pairs = list(zip(sides, node.ops, sides[1:], strict=False))
        codes = [ast.unparse(ast.Compare(a, [op], [b])) for a, op, b in pairs]
        self.generic_visit(node)
        sides, parts = [node.left, *node.comparators], list[ast.expr]()
        for i, (code, op) in enumerate(zip(codes, node.ops, strict=True)):
            a, b, sign = sides[i], sides[i + 1], SIGNS.get(type(op).__name__)
            watched = self._watched(code, sign, node.lineno, a, b) if sign else None
            parts.append(watched or ast.Compare(a, [op], [b]))
        return parts[0] if len(parts) == 1 else ast.BoolOp(ast.And(), parts)

    def visit_Call(self, node: ast.Call) -> ast.expr:
        code, called = ast.unparse(node), node.func
        self.generic_visit(node)
        if not isinstance(called, ast.Attribute) or called.attr not in METHODS or node.keywords:
            return node
        of_torch = ast.unparse(called.value) == "torch"
        sides = node.args if of_torch else [called.value, *node.args]
        if len(sides) != 2:
            return node
        return self._watched(code, METHODS[called.attr], node.lineno, *sides)

    def _watched(self, code: str, sign: str, line: int, a: ast.expr, b: ast.expr) -> ast.Call:
        self.found.append(Comparison(code, sign, self.function, self.first_line + line - 1))
        number = ast.Constant(len(self.found) - 1)
        return ast.Call(ast.Name(WATCH, ast.Load()), [number, a, b], [])


def unshown(exercise: Exercise, seeds: Iterable[int], but: Collection[str]) -> Iterator[str]:
    """A sentence for each comparison whose behavior at equality the cases do not show.

    Left out are comparisons in functions that the reference calls and that are named in `but`.
    """
    if exercise.suspects:  # what a test compares, it asserts
        return
    excused, needless = {code for code, _ in exercise.boundaries}, dict(exercise.boundaries)
    said: dict[str, None] = {}
    for seed, hidden in product(seeds, (False, True)):
        with one_thread(), torch.random.fork_rng(devices=[]):
            found = list(_compared(Exam(exercise, seed, hidden), but))
        for comparison, missed in found:
            excuse = excused & {comparison.code, ANY}
            for code in excuse if missed else ():
                needless.pop(code, None)
            if missed and not excuse:
                said[_in_words(comparison, missed)] = None
    yield from said
    for code in needless:
        yield (
            f"# Boundaries excuses `{code}`, which is not a comparison of the function, or one "
            "that the cases cover already."
        )


def _compared(exam: Exam, but: Collection[str]) -> Iterator[tuple[Comparison, list[str]]]:
    """Each comparison, and those of its changes, in words, that no case of the exam tells."""
    watched = Watched(exam.exercise.reference)
    for case in exam.cases:
        watched.label = case.label
        call(watched, case)
    for number, comparison in enumerate(watched.comparisons):
        if comparison.function == watched.name or comparison.function not in but:
            changes = comparison.changes()
            made = {words: watched.with_change(number, instead) for words, instead in changes}
            yield comparison, [words for words, fn in made.items() if not _is_told(exam, fn)]


def _is_told(exam: Exam, changed: Callable) -> bool:
    return any(
        judge(exam.exercise, case, expected, call(changed, case))
        for case, expected in zip(exam.cases, exam.expected, strict=True)
    )


def _in_words(comparison: Comparison, missed: list[str]) -> str:
    c = comparison
    stand = "no case is at equality"
    if c.equal_on:
        first, *more = c.equal_on
        which = f"“{first}” and {len(more)} more" if more else f"“{first}”"
        stand = f"the cases at equality ({which}) do not show it"
    return (
        f"no case tells {' or '.join(missed)} in `{c.code}` ({c.function}, line {c.line}), and "
        f"{stand}: add one that does, or say under # Boundaries why none can."
    )
