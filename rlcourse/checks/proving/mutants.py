"""Small random changes to the source of a function, as slips of the pen would make them.

``mutants(fn, count, seed)`` gives functions that differ from ``fn`` in one place. Their loops are
counted, so that none runs for ever.
"""

import ast
import copy
import difflib
import inspect
import itertools
import linecache
import random
import textwrap
import warnings
import weakref
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, TypeVar

Node = TypeVar("Node", bound=ast.AST)
Change = tuple[int, ast.AST]  # the number of a node of a tree, and what comes in its place

_numbers = itertools.count()
LOOPS = 20_000  # rounds of all loops of one call

SWAPPED_OPERATORS = {
    ast.Add: (ast.Sub,),
    ast.Sub: (ast.Add,),
    ast.Mult: (ast.Div, ast.Add),
    ast.Div: (ast.Mult,),
    ast.Pow: (ast.Mult,),
    ast.BitAnd: (ast.BitOr,),
    ast.BitOr: (ast.BitAnd,),
    ast.FloorDiv: (ast.Mod,),
    ast.Mod: (ast.FloorDiv,),
    ast.Lt: (ast.LtE, ast.Gt),
    ast.LtE: (ast.Lt, ast.GtE),
    ast.Gt: (ast.GtE, ast.Lt),
    ast.GtE: (ast.Gt, ast.LtE),
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,),
    ast.Is: (ast.IsNot,),
    ast.IsNot: (ast.Is,),
    ast.In: (ast.NotIn,),
    ast.NotIn: (ast.In,),
    ast.And: (ast.Or,),
    ast.Or: (ast.And,),
}
_PAIRS = (
    "sum mean", "min max", "minimum maximum", "exp log", "argmax argmin", "floor ceil", "any all",
    "softmax log_softmax", "square sqrt", "split rsplit", "find rfind", "strip lstrip",
    "abs square", "repeat repeat_interleave", "cumsum cumprod", "prod sum", "std var", "exp expm1",
    "search match", "logsigmoid sigmoid", "lower upper", "amax amin", "sqrt rsqrt",
)  # fmt: skip
SWAPPED_NAMES: dict[str, list[str]] = {}
for _pair in _PAIRS:
    _one, _other = _pair.split()
    SWAPPED_NAMES.setdefault(_one, []).append(_other)
    SWAPPED_NAMES.setdefault(_other, []).append(_one)


class EndlessLoop(RuntimeError):
    """A mutant that goes round too often."""


@dataclass(frozen=True)
class Mutant:
    """A changed function, and what was changed."""

    function: Callable
    diff: str


def mutants(fn: Callable, count: int, seed: int = 0) -> Iterator[Mutant]:
    """Up to `count` different ones, in random order; none where `fn` has no source of its own."""
    tree = source_tree(fn)
    if tree is None:
        return
    before = ast.unparse(tree)
    ways, seen = list(changes(tree)), {before}
    random.Random(seed).shuffle(ways)
    for way in ways:
        changed = with_change(tree, way)
        text = ast.unparse(changed)
        if count and text not in seen and (function := compiled(changed, fn)):
            seen.add(text)
            count -= 1
            yield Mutant(function, _diff(before, text))


def source_tree(fn: Callable) -> ast.FunctionDef | None:
    """The definition of a function that reads nothing of an enclosing one."""
    fn = inspect.unwrap(fn)
    if getattr(fn, "__closure__", None) or not inspect.isfunction(fn):
        return None
    try:
        parsed = ast.parse(textwrap.dedent(inspect.getsource(fn))).body
    except (OSError, SyntaxError):
        return None
    if len(parsed) != 1 or not isinstance(parsed[0], ast.FunctionDef):
        return None
    tree = parsed[0]
    if ast.get_docstring(tree):
        tree.body = tree.body[1:]
    arguments = tree.args
    for argument in [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]:
        argument.annotation = None
    tree.returns = None
    return tree


def _diff(before: str, after: str) -> str:
    lines = difflib.unified_diff(before.splitlines(), after.splitlines(), lineterm="", n=0)
    return "\n".join(line for line in lines if line[:3] not in ("---", "+++") and line[0] != "@")


def compiled(tree: ast.FunctionDef, fn: Callable, *beside: ast.FunctionDef) -> Callable | None:
    """The function of a tree, in the namespace of `fn` with other definitions `beside` it; None
    where Python refuses it."""
    module = ast.Module([*beside, tree], [])
    counted = _CountLoops().visit(copy.deepcopy(module))
    namespace = dict(inspect.unwrap(fn).__globals__)
    file = f"<mutant {next(_numbers)}>"
    try:
        text = ast.unparse(ast.fix_missing_locations(counted))
        with warnings.catch_warnings(action="ignore"):
            exec(compile(text, file, "exec"), namespace)
    except (SyntaxError, ValueError, TypeError, NameError):
        return None
    function = namespace[tree.name]
    # An error is told with its line, as a student's would be.
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    weakref.finalize(function, linecache.cache.pop, file, None)

    def guarded(*args, **kwargs):
        rounds = 0

        def counting(items):
            nonlocal rounds
            for item in items:
                rounds += 1
                if rounds > LOOPS:
                    raise EndlessLoop
                yield item

        def tick():
            nonlocal rounds
            rounds += 1
            if rounds > LOOPS:
                raise EndlessLoop
            return True

        namespace.update(_counting_=counting, _tick_=tick)
        return function(*args, **kwargs)

    guarded.__name__ = tree.name
    return guarded


class _CountLoops(ast.NodeTransformer):
    """Every round of every loop is counted."""

    def visit_While(self, node):
        self.generic_visit(node)
        test = ast.BoolOp(ast.And(), [_call("_tick_"), node.test])
        return ast.While(test, node.body, node.orelse)

    def visit_For(self, node):
        self.generic_visit(node)
        node.iter = _call("_counting_", node.iter)
        return node

    def visit_comprehension(self, node):
        self.generic_visit(node)
        node.iter = _call("_counting_", node.iter)
        return node


def _call(name: str, *arguments: ast.expr) -> ast.Call:
    return ast.Call(ast.Name(name, ast.Load()), list(arguments), [])


def changes(tree: ast.FunctionDef) -> Iterator[Change]:
    """Every way to change the tree in one place."""
    own = {n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    names = sorted(own | {argument.arg for argument in tree.args.args})
    for place, node in enumerate(ast.walk(tree)):
        if isinstance(node, ast.expr):
            yield from ((place, changed) for changed in _changed_expressions(node, names))
        elif isinstance(node, ast.stmt) and node is not tree:
            yield from ((place, changed) for changed in _changed_statements(node))
        elif isinstance(node, ast.arguments):
            for i, default in enumerate(node.defaults):
                for changed in _changed_expressions(default, []):
                    yield place, _with(node, "defaults", i, changed)


def with_change(tree: ast.FunctionDef, change: Change) -> ast.FunctionDef:
    """A copy of the tree with the change made."""
    place, new = change
    tree = copy.deepcopy(tree)
    target = list(ast.walk(tree))[place]
    changed: Any = _Replace(target, new).visit(tree)
    return changed


class _Replace(ast.NodeTransformer):
    def __init__(self, target: ast.AST, new: ast.AST):
        self.target, self.new = target, new

    def visit(self, node: ast.AST) -> ast.AST:
        return self.new if node is self.target else self.generic_visit(node)


def _with(node: Node, field: str, index: int | None, new: Any) -> Node:
    """A copy of the node with one field, or one item of a list, replaced or (None) left out."""
    changed = copy.deepcopy(node)
    if index is None:
        setattr(changed, field, new)
    elif new is None:
        del getattr(changed, field)[index]
    else:
        getattr(changed, field)[index] = new
    return changed


def _changed_statements(node: ast.stmt) -> Iterator[ast.stmt]:
    if isinstance(node, ast.If):
        yield _with(node, "test", None, ast.Constant(True))
        yield _with(node, "test", None, ast.Constant(False))
    elif isinstance(node, ast.AugAssign | ast.Expr | ast.Raise | ast.Assert):
        yield ast.Pass()
        yield from _with_other_operator(node)
    elif isinstance(node, ast.Assign) and len(node.targets) == 1:
        target = node.targets[0]
        names = {n.id for n in ast.walk(node.value) if isinstance(n, ast.Name)}
        if isinstance(target, ast.Name) and target.id in names:  # x = f(x): leave the step out
            yield ast.Pass()


def _with_other_operator(node: Node) -> Iterator[Node]:
    op: Any = getattr(node, "op", None)
    for operator in SWAPPED_OPERATORS.get(type(op), ()):
        yield _with(node, "op", None, operator())


def _changed_expressions(node: ast.expr, names: list[str]) -> Iterator[ast.expr]:
    yield from _with_other_operator(node)
    if isinstance(node, ast.BinOp):
        yield from (node.left, node.right)
        if isinstance(node.op, ast.Sub | ast.Div | ast.Pow | ast.MatMult):
            yield ast.BinOp(node.right, node.op, node.left)
    elif isinstance(node, ast.UnaryOp):
        yield node.operand
    elif isinstance(node, ast.BoolOp):
        yield from node.values
    elif isinstance(node, ast.Compare):
        for op in SWAPPED_OPERATORS.get(type(node.ops[0]), ()):
            yield _with(node, "ops", 0, op())
    elif isinstance(node, ast.Constant):
        yield from (ast.Constant(value) for value in _other_constants(node.value))
    elif isinstance(node, ast.Call):
        yield from _changed_calls(node)
    elif isinstance(node, ast.IfExp):
        yield from (node.body, node.orelse)
        yield ast.IfExp(node.test, node.orelse, node.body)
    elif isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Load):
        yield node.value
        if isinstance(node.slice, ast.Tuple) and len(node.slice.elts) == 2:
            yield _with(node, "slice", None, ast.Tuple(node.slice.elts[::-1], ast.Load()))
    elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and node.id in names:
        yield from (ast.Name(name, ast.Load()) for name in names if name != node.id)


def _changed_calls(node: ast.Call) -> Iterator[ast.expr]:
    if isinstance(node.func, ast.Attribute):
        receiver = node.func.value
        if not (isinstance(receiver, ast.Name) and receiver.id in ("torch", "F", "re", "math")):
            yield receiver
        for name in SWAPPED_NAMES.get(node.func.attr, ()):
            yield _with(node, "func", None, ast.Attribute(receiver, name, ast.Load()))
    elif isinstance(node.func, ast.Name):
        for name in SWAPPED_NAMES.get(node.func.id, ()):
            yield _with(node, "func", None, ast.Name(name, ast.Load()))
    yield from (a for a in node.args if not isinstance(a, ast.Starred | ast.GeneratorExp))
    for i in range(len(node.keywords)):
        yield _with(node, "keywords", i, None)
    for i in range(len(node.args) - 1):
        swapped = [*node.args]
        swapped[i : i + 2] = swapped[i + 1], swapped[i]
        yield _with(node, "args", None, swapped)
    if len(node.args) > 1:
        yield from (_with(node, "args", i, None) for i in range(len(node.args)))


def _other_constants(value) -> Iterator:
    if isinstance(value, bool):
        yield not value
    elif isinstance(value, int):
        yield from (value + 1, value - 1)
    elif isinstance(value, float):
        yield from (value * 2, value / 2, 0.0, value + 1)
    elif isinstance(value, str):
        yield ""
        if len(value) > 1:
            yield from (value[1:], value[:-1])
    elif value is None:
        yield 0
