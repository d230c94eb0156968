"""A function and the helpers that it calls, as syntax trees that can be changed and run again."""

import ast
import copy
import inspect
import textwrap
import warnings
from collections.abc import Callable, Collection, Iterator
from contextlib import suppress
from itertools import islice
from types import CodeType, FunctionType
from typing import Any

from rlcourse.checks.asking.calling import call, describe
from rlcourse.checks.asking.case import Case
from rlcourse.checks.telling.changes import Change, changes, kind_of, put

ROUNDS = 20_000  # of all loops of one call
TICK = "_tick_"  # what counts them
HELPERS = 4  # functions beside it that a function calls, and that are changed as well


class EndlessLoop(RuntimeError):
    """A changed function loops on and on."""


class Source:
    """The text of a function, and of helpers whose names are not among `others`.

    Raises ``ValueError`` if there is no text to change.
    """

    def __init__(self, fn: Callable, others: Collection[str] = ()):
        self.fn, self.rounds = inspect.unwrap(fn), 0
        try:
            self.functions = list(_with_helpers(self.fn, others))
            self.trees = [_tree(function) for function in self.functions]
            self.texts = [inspect.getsource(function).splitlines() for function in self.functions]
        except (AttributeError, OSError, TypeError, SyntaxError, StopIteration) as error:
            raise ValueError(f"{fn!r} has no text of its own") from error
        self._codes = self._compiled_all(self.trees)

    def changes(self, case: Case) -> list[tuple[int, Change]]:
        """Every change of a place that runs on the case, with the number of the function, the
        likeliest first."""
        kinds = self._kinds(case)
        found = [
            (number, change)
            for number, (tree, function) in enumerate(zip(self.trees, self.functions, strict=True))
            for change in changes(tree, kinds, _variables(tree, function, kinds))
        ]
        return sorted(found, key=lambda item: item[1].rank)

    def changed(self, number: int, change: Change, **beside: Any) -> Callable | None:
        """The function with a change in its tree of that number, and other names beside it; None
        where Python refuses it."""
        new = change.made()
        code = self._compiled(self.trees[number], self.functions[number])
        put(change.parent, change.field, new, change.old)
        return self._defined([*self._codes[:number], code, *self._codes[number + 1 :]], **beside)

    def line(self, number: int, change: Change) -> tuple[int, str]:
        """The line of a change, in its cell or file, and its text."""
        first = self.functions[number].__code__.co_firstlineno
        return first + change.line - 1, self.texts[number][change.line - 1].strip()

    def plain(self) -> Callable | None:
        """The function without a change."""
        return self._defined(self._codes)

    def _defined(self, codes: list[CodeType | None], **beside: Any) -> Callable | None:
        """The function in a copy of its namespace."""
        space = {**self.fn.__globals__, TICK: self._tick, **beside}
        made: Any = None
        for function, code in reversed(list(zip(self.functions, codes, strict=True))):
            try:
                cells = (cell.cell_contents for cell in function.__closure__ or ())
                exec(code, space)  # type: ignore[arg-type]  # None raises TypeError
                made = space[function.__name__] = space["_outer_"](*cells)
            except Exception:
                return None

        def counted(*args, **kwargs):
            self.rounds = 0
            return made(*args, **kwargs)

        return counted

    def _compiled_all(self, trees: list[ast.FunctionDef]) -> list[CodeType | None]:
        return [self._compiled(t, fn) for t, fn in zip(trees, self.functions, strict=True)]

    def _compiled(self, tree: ast.FunctionDef, function: FunctionType) -> CodeType | None:
        free = ", ".join(function.__code__.co_freevars)
        outer: Any = ast.parse(f"def _outer_({free}):\n return {tree.name}")
        outer.body[0].body.insert(0, tree)
        with suppress(Exception), warnings.catch_warnings(action="ignore"):
            return compile(outer, "<changed>", "exec")
        return None

    def _tick(self) -> bool:
        self.rounds += 1
        if self.rounds > ROUNDS:
            raise EndlessLoop
        return True

    def _kinds(self, case: Case) -> dict[ast.AST, str]:
        """The kind of value of every expression that runs on the case; "" of all around them."""
        nodes = [node for tree in self.trees for node in ast.walk(tree)]
        watched: Any = copy.deepcopy(self.trees)
        numbers = {n: k for k, n in enumerate(n for tree in watched for n in ast.walk(tree))}
        kinds: dict[ast.AST, str] = {}

        def see(number: int, value: Any) -> Any:
            kinds[nodes[number]] = kind_of(value)
            return value

        watched = [ast.fix_missing_locations(_Watched(numbers).visit(tree)) for tree in watched]
        if function := self._defined(self._compiled_all(watched), _see_=see):
            call(function, case)
        ran = [node for node in nodes if any(part in kinds for part in ast.walk(node))]
        return {node: kinds.get(node, "") for node in ran}


class _Watched(ast.NodeTransformer):
    """Every expression tells its value."""

    def __init__(self, numbers: dict[ast.AST, int]):
        self.numbers = numbers

    def visit(self, node: ast.AST) -> ast.AST:
        counts = isinstance(node, ast.Call) and getattr(node.func, "id", "") == TICK
        fixed = counts or isinstance(node, ast.JoinedStr | ast.pattern)
        if fixed or getattr(node, "annotation", None):
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
    """Its definition, without decorators, in which all rounds of loops are counted."""
    parsed = ast.parse(textwrap.dedent(inspect.getsource(function)))
    tree = next(node for node in ast.walk(parsed) if isinstance(node, ast.FunctionDef))
    tree.decorator_list = []
    if ast.get_docstring(tree):
        tree.body = tree.body[1:] or [ast.Pass()]
    for node in list(ast.walk(tree)):
        tick = ast.parse(f"{TICK}()", mode="eval").body
        if isinstance(node, ast.For | ast.While):
            node.body.insert(0, ast.Expr(tick))
        elif isinstance(node, ast.comprehension):
            node.ifs.insert(0, tick)
    return ast.fix_missing_locations(tree)


def _variables(tree: ast.FunctionDef, function: FunctionType, kinds) -> dict[str, str]:
    """The function's own names and the kinds of their values."""
    nodes = list(ast.walk(tree))
    own = {n.id for n in nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    own |= {n.arg for n in nodes if isinstance(n, ast.arg)}
    given = inspect.signature(function).parameters.values()
    known = {p.name: kind_of(p.default) for p in given if p.default is not p.empty}
    known |= {n.id: kinds[n] for n in nodes if isinstance(n, ast.Name) and kinds.get(n)}
    return {name: known.get(name, "") for name in sorted(own)}
