"""A function as a syntax tree that can be changed and run again."""

import ast
import copy
import inspect
import textwrap
import warnings
from collections.abc import Callable
from contextlib import suppress
from types import CodeType, FunctionType
from typing import Any

from rlcourse.checks.asking.calling import call
from rlcourse.checks.asking.case import Case
from rlcourse.checks.telling.changes import Change, changes, kind_of, put

ROUNDS = 20_000  # of all loops of one call
TICK = "_tick_"  # what counts them


class EndlessLoop(RuntimeError):
    """A changed function loops on and on."""


class Source:
    """The text of a function. Raises ``ValueError`` if there is no text to change."""

    def __init__(self, fn: Callable):
        self.fn, self.rounds = inspect.unwrap(fn), 0
        try:
            self.tree = _tree(self.fn)
            self.text = inspect.getsource(self.fn).splitlines()
            if self.fn.__code__.co_freevars:
                raise TypeError("it cannot be defined again elsewhere")
        except (AttributeError, OSError, TypeError, SyntaxError, StopIteration) as error:
            raise ValueError(f"{fn!r} has no text of its own") from error

    def changes(self, case: Case) -> list[Change]:
        """Every change of a place that runs on the case, the likeliest first."""
        kinds = self._kinds(case)
        found = changes(self.tree, kinds, _variables(self.tree, self.fn, kinds))
        return sorted(found, key=lambda change: change.rank)

    def changed(self, change: Change) -> Callable | None:
        """The function with a change; None where Python refuses it."""
        new = change.made()
        code = _compiled(self.tree)
        put(change.parent, change.field, new, change.old)
        return self._defined(code)

    def line(self, change: Change) -> tuple[int, str]:
        """The line of a change, in its cell or file, and its text."""
        number = change.old.lineno - 1
        return self.fn.__code__.co_firstlineno + number, self.text[number].strip()

    def plain(self) -> Callable | None:
        """The function without a change."""
        return self._defined(_compiled(self.tree))

    def _defined(self, code: CodeType | None, **beside: Any) -> Callable | None:
        """The function in a copy of its namespace, with other names beside it."""
        space = {**self.fn.__globals__, TICK: self._tick, **beside}
        try:
            exec(code, space)  # type: ignore[arg-type]  # None raises TypeError
            made = space[self.tree.name]
        except Exception:
            return None

        def counted(*args, **kwargs):
            self.rounds = 0
            return made(*args, **kwargs)

        return counted

    def _tick(self) -> bool:
        self.rounds += 1
        if self.rounds > ROUNDS:
            raise EndlessLoop
        return True

    def _kinds(self, case: Case) -> dict[ast.AST, str]:
        """The kind of value of every expression that runs on the case; "" of all around them."""
        nodes, watched = list(ast.walk(self.tree)), copy.deepcopy(self.tree)
        numbers = {node: number for number, node in enumerate(ast.walk(watched))}
        kinds: dict[ast.AST, str] = {}

        def see(number: int, value: Any) -> Any:
            kinds[nodes[number]] = kind_of(value)
            return value

        code = _compiled(ast.fix_missing_locations(_Watched(numbers).visit(watched)))
        if function := self._defined(code, _see_=see):
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


def _compiled(tree: ast.FunctionDef) -> CodeType | None:
    with suppress(Exception), warnings.catch_warnings(action="ignore"):
        return compile(ast.Module([tree], []), "<changed>", "exec")
    return None


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
