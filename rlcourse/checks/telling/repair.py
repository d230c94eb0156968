"""The line of a wrong function in which one change makes every case agree.

One change of the student's own code after another is tried (``changes``), the likeliest first.
Their number is fixed, so that what is said does not depend on how fast the machine is. A line is
told only if all repairs that are equally likely lie on it; the change itself is not told.
"""

import ast
import copy
import inspect
import textwrap
import warnings
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, replace
from itertools import islice
from types import CodeType, FunctionType
from typing import Any

import torch

from rlcourse.checks.asking.calling import Outcome, call, call_all, describe, one_thread
from rlcourse.checks.judging.exam import Exam, judge
from rlcourse.checks.telling.changes import LEAST_LIKELY, Change, changes, kind_of
from rlcourse.checks.telling.diagnose import DIFFER
from rlcourse.checks.telling.result import Result
from rlcourse.checks.telling.show import size_of

MOST = 300  # changes that are tried
ROUNDS = 20_000  # of all loops of one call
HELPERS = 4  # functions of the student's that the function calls, and that are changed as well


@dataclass(frozen=True)
class Repair:
    """One line of the student's, and how many of the cases agree after one change in it."""

    function: str
    line_number: int  # in its cell or file
    line: str
    cases: int

    @property
    def sentence(self) -> str:
        where = f"line {self.line_number} of {self.function}: `{self.line}`"
        return f"With one change in one line, all {self.cases} cases agree. Look at {where}."


def with_repair(result: Result, exam: Exam, fn: Callable, others: Collection[str]) -> Result:
    """The result of a failed check, with the line in which one change repairs `fn`."""
    if result.passed or result.unwritten or result.mistake or exam.hidden:
        return result
    found = repair(fn, exam, others)
    if found is None:
        return result
    said = (sentence for sentence in result.sentences if sentence != DIFFER)
    return replace(result, sentences=(*said, found.sentence))


class EndlessLoop(RuntimeError):
    """A changed function loops on and on."""


def repair(fn: Callable, exam: Exam, others: Collection[str] = ()) -> Repair | None:
    """The only line of `fn`, or of a helper that it calls, in which some change repairs it.

    Functions whose names are in `others` have checks of their own, and are not changed.
    """
    function = inspect.unwrap(fn)
    if exam.exercise.suspects or exam.exercise.observe or not isinstance(function, FunctionType):
        return None
    try:
        code = _Code(function, others)
    except (OSError, TypeError, SyntaxError, IndentationError, StopIteration):
        return None  # there is no text to change
    with torch.random.fork_rng(devices=[]), one_thread():
        found = _search(code, exam)
    return replace(found, cases=len(exam.cases)) if found else None


def _search(code: "_Code", exam: Exam) -> Repair | None:
    trial = _Trial(code, exam)
    if not trial.failing:
        return None  # what is wrong is outside of the text, such as a decorator
    found: set[Repair] = set()
    best = LEAST_LIKELY
    for number, change in code.changes(exam.cases[trial.order[0]]):
        if change.rank > best or len(found) > 1:
            break
        change.make()
        function = code.defined(number)
        change.undo()
        if function and trial.agrees(function):
            best = change.rank
            found.add(code.place(number, change))
    return found.pop() if len(found) == 1 else None  # of two lines either could be meant


class _Trial:
    """Changed functions on the cases, first on the one that tells the most for the least."""

    def __init__(self, code: "_Code", exam: Exam):
        self.code, self.exam = code, exam
        function = code.defined()
        outcomes = call_all(function, exam.cases) if function else []
        failed = exam.examine(describe(code.fn), outcomes) if outcomes else None
        self.failing = failed.failing if failed else []
        sizes = [size_of(case.arguments) for case in exam.cases]
        self.order = sorted(range(len(sizes)), key=lambda i: (i not in self.failing, sizes[i]))

    def agrees(self, function: Callable) -> bool:
        """Whether all cases agree; one that tells a change wrong is asked early from then on."""
        for k, i in enumerate(self.order):
            if self._differs(i, call(function, self.exam.cases[i])):
                if k > 1:
                    self.order.insert(1, self.order.pop(k))
                return False
        outcomes = call_all(function, self.exam.cases)  # twice each, as in a check
        return not self.exam.examine(describe(function), outcomes).failing

    def _differs(self, i: int, outcome: Outcome) -> bool:
        self.code.rounds = 0
        case, expected = self.exam.cases[i], self.exam.expected[i]
        return bool(judge(self.exam.exercise, case, expected, outcome.in_training(case)))


class _Code:
    """A function and the helpers that it calls, as trees that can be changed and run again."""

    def __init__(self, fn: FunctionType, others: Collection[str]):
        self.fn, self.rounds = fn, 0
        self.functions = list(_with_helpers(fn, others))
        self.trees = [_tree(function) for function in self.functions]
        self.texts = [inspect.getsource(function).splitlines() for function in self.functions]
        self.plain = [
            self._compiled(tree, f) for tree, f in zip(self.trees, self.functions, strict=True)
        ]

    def changes(self, case) -> list[tuple[int, Change]]:
        """Every change of a place that runs on the case, with the number of the function."""
        kinds = self._kinds(case)
        found = []
        for number, (tree, function) in enumerate(zip(self.trees, self.functions, strict=True)):
            likeliest = islice(changes(tree, kinds, _variables(tree, function, kinds)), MOST)
            found += [(number, change) for change in likeliest]
        for tree in self.trees:
            _count_rounds(tree)
        return sorted(found, key=lambda item: item[1].rank)[:MOST]

    def place(self, number: int, change: Change) -> Repair:
        function, text = self.functions[number], self.texts[number]
        line = text[change.line - 1].strip()
        at = function.__code__.co_firstlineno + change.line - 1
        return Repair(function.__name__, at, line, 0)

    def defined(self, changed: int | None = None, **watchers) -> Callable | None:
        """The function in a copy of its namespace; None where Python refuses the changed one."""
        space = {**self.fn.__globals__, "_tick_": self._tick, **watchers}
        made = None
        for number in reversed(range(len(self.functions))):
            function, code = self.functions[number], self.plain[number]
            if number == changed:
                code = self._compiled(self.trees[number], function)
            if code is None:
                return None
            try:
                cells = (cell.cell_contents for cell in function.__closure__ or ())
                exec(code, space)
                made = space[function.__name__] = space["_outer_"](*cells)
            except Exception:
                return None
        return made

    def _compiled(self, tree: ast.FunctionDef, function: FunctionType) -> CodeType | None:
        outer: Any = ast.parse(
            f"def _outer_({', '.join(function.__code__.co_freevars)}):\n return {tree.name}"
        )
        outer.body[0].body.insert(0, tree)
        try:
            with warnings.catch_warnings(action="ignore"):
                return compile(outer, "<changed>", "exec")
        except Exception:
            return None

    def _tick(self) -> bool:
        self.rounds += 1
        if self.rounds > ROUNDS:
            raise EndlessLoop
        return True

    def _kinds(self, case) -> dict[ast.AST, str]:
        """The kind of value of every expression that runs on the case; "" of all around them."""
        nodes = [node for tree in self.trees for node in ast.walk(tree)]
        kinds: dict[ast.AST, str] = {}

        def see(number: int, value: Any) -> Any:
            kinds[nodes[number]] = kind_of(value)
            return value

        watched = copy.deepcopy(self.trees)
        numbers = {n: k for k, n in enumerate(n for tree in watched for n in ast.walk(tree))}
        plain, self.plain = self.plain, []
        for tree, function in zip(watched, self.functions, strict=True):
            told: Any = ast.fix_missing_locations(_Watched(numbers).visit(tree))
            self.plain.append(self._compiled(told, function))
        if function := self.defined(_see_=see):
            call(function, case)
        self.plain = plain
        parents = {child: node for node in nodes for child in ast.iter_child_nodes(node)}
        for node in list(kinds):
            above = parents.get(node)
            while above and above not in kinds:
                kinds[above] = ""
                above = parents.get(above)
        for node in nodes:  # parts without a value of their own, such as slices
            valueless = not isinstance(node, ast.expr) or isinstance(node, ast.Slice)
            if valueless and parents.get(node) in kinds:
                kinds.setdefault(node, "")
        return kinds


class _Watched(ast.NodeTransformer):
    """Every expression tells its value."""

    def __init__(self, numbers: dict[ast.AST, int]):
        self.numbers = numbers

    def visit(self, node: ast.AST) -> ast.AST:
        if isinstance(node, ast.JoinedStr | ast.pattern) or getattr(node, "annotation", None):
            return node
        new: Any = self.generic_visit(node)
        read = isinstance(getattr(new, "ctx", ast.Load()), ast.Load)
        parts = new.elts if isinstance(new, ast.Tuple) else [new]
        bare = any(isinstance(part, ast.Slice | ast.Starred) for part in parts)
        if bare or not read or not isinstance(new, ast.expr):
            return new
        see = ast.Name("_see_", ast.Load())
        return ast.Call(see, [ast.Constant(self.numbers[node]), new], [])


def _with_helpers(fn: FunctionType, others: Collection[str]) -> Iterator[FunctionType]:
    """The function, and functions beside it that it calls."""
    found = [fn]
    for function in islice(found, 1 + HELPERS):  # which grows
        yield function
        for name in describe(function).uses:
            helper: Any = fn.__globals__.get(name)
            beside = getattr(helper, "__globals__", None) is fn.__globals__
            if beside and helper.__name__ == name not in others and helper not in found:
                found.append(helper)


def _tree(function: FunctionType) -> ast.FunctionDef:
    tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    found = next(node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef))
    found.decorator_list = []
    return found


def _variables(tree: ast.FunctionDef, function: FunctionType, kinds) -> dict[str, str]:
    """The function's own names and the kinds of their values."""
    nodes = list(ast.walk(tree))
    own = {n.id for n in nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    own |= {n.arg for n in nodes if isinstance(n, ast.arg)}
    given = inspect.signature(function).parameters.values()
    known = {p.name: kind_of(p.default) for p in given if p.default is not p.empty}
    known |= {n.id: kinds[n] for n in nodes if isinstance(n, ast.Name) and kinds.get(n)}
    return {name: known.get(name, "") for name in sorted(own)}


def _count_rounds(tree: ast.FunctionDef) -> None:
    """Count the rounds of all loops, in what is compiled from now on."""
    for node in ast.walk(tree):
        tick = ast.parse("_tick_()", mode="eval").body
        if isinstance(node, ast.For | ast.While):
            node.body.insert(0, ast.Expr(tick))
        elif isinstance(node, ast.comprehension):
            node.ifs.insert(0, tick)
    ast.fix_missing_locations(tree)
