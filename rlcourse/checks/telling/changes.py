"""What may stand in one place of a function instead, as slips of the pen would have it.

Each change puts another node of the syntax tree, which fits the kind of value that was seen there,
in the place of one. The rank says how likely students are to have slipped in this way: 0 comes
first. Kinds of change that repaired none of some 750 wrong answers of six readers are left out.
"""

import ast
import copy
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from torch import Tensor

KINDS = {
    "bool": "truth", "int": "integer", "float": "number", "str": "str", "list": "list",
    "tuple": "list",
}  # fmt: skip
OPERATORS = {
    ast.Add: (ast.Sub, ast.Mult), ast.Sub: (ast.Add, ast.Div, ast.Mult),
    ast.Mult: (ast.Div, ast.Add, ast.Sub), ast.Div: (ast.Mult, ast.FloorDiv, ast.Sub),
    ast.Pow: (ast.Mult,), ast.FloorDiv: (ast.Div, ast.Mod), ast.Mod: (ast.FloorDiv,),
    ast.BitAnd: (ast.BitOr,), ast.BitOr: (ast.BitAnd,), ast.MatMult: (ast.Mult,),
}  # fmt: skip
COMPARISONS = {
    ast.Lt: (ast.LtE, ast.Gt, ast.GtE, ast.Eq), ast.LtE: (ast.Lt, ast.GtE, ast.Gt, ast.Eq),
    ast.Gt: (ast.GtE, ast.Lt, ast.LtE, ast.NotEq), ast.GtE: (ast.Gt, ast.LtE, ast.Lt, ast.Eq),
    ast.Eq: (ast.NotEq, ast.LtE, ast.GtE), ast.NotEq: (ast.Eq, ast.Gt, ast.Lt),
    ast.Is: (ast.IsNot,), ast.IsNot: (ast.Is,), ast.In: (ast.NotIn, ast.Eq), ast.NotIn: (ast.In,),
}  # fmt: skip
OTHER = {"sum": "mean", "min": "max", "minimum": "maximum", "amin": "amax"}
OTHER |= {other: name for name, other in OTHER.items()}
# What may be missing around a value X of a kind, by rank
MISSING = {
    "float": (
        "-X ; X.detach()",
        "X.exp() ; X.log() ; X.abs() ; X.clamp(min=1) ; X.clamp(min=0) ; 1 - X ; X.mean()",
        "X.sum() ; X.clamp(max=1) ; X.clamp(max=0) ; X.sum(-1) ; X.mean(-1) ; X.sum(0) ; X.mean(0)"
        " ; X.mT ; X[:, None] ; X ** 2 ; X.sqrt() ; 1 / X ; X + 1 ; X - 1 ; X / 2 ; X.clone()"
        " ; X.double() ; X.float() ; X.cumsum(-1) ; X.flip(-1)",
    ),
    "count": (
        "",
        "~X ; X.clamp(min=1) ; X.bool() ; X.double() ; X.float()",
        "-X ; X + 1 ; X - 1 ; X.clone() ; X.long() ; X.sum(-1) ; X[:, None]",
    ),
    "number": (
        "-X",
        "X + 1 ; X - 1 ; 1 - X ; max(X, 1)",
        "max(X, 0) ; min(X, 1) ; abs(X) ; X / 2 ; X ** 2 ; int(X) ; str(X)",
    ),
    "integer": (
        "",
        "X + 1 ; X - 1 ; max(X, 1) ; float(X)",
        "-X ; 1 - X ; max(X, 0) ; str(X) ; X / 2",
    ),
    "truth": ("not X", "float(X)"),
    "str": ("", "X.strip() ; X.lower()", "int(X) ; float(X)"),
    "list": ("", "X[::-1] ; X[:-1] ; X[1:]", "sorted(X) ; list(X) ; X.copy() ; set(X)"),
}
MODULES = ("torch", "F", "math", "np", "re", "random", "itertools", "functools")
LEAST_LIKELY = 3  # the last rank
Option = tuple[int, str | ast.AST]  # rank, and what comes in place of the node X


@dataclass(frozen=True, eq=False)
class Change:
    """Another node, or the code of one, in one place of a tree."""

    rank: int
    parent: ast.AST
    field: str
    old: Any
    new: str | ast.AST

    def made(self) -> ast.AST:
        """What now stands in the place."""
        new = filled(self.new, X=self.old) if isinstance(self.new, str) else self.new
        new = new if hasattr(new, "lineno") else ast.copy_location(new, self.old)
        put(self.parent, self.field, self.old, ast.fix_missing_locations(new))
        return new


def put(parent: ast.AST, field: str, old: ast.AST, new: ast.AST) -> None:
    """`new` in the place of `old`."""
    value = getattr(parent, field)
    if isinstance(value, list):
        value[next(i for i, item in enumerate(value) if item is old)] = new
    else:
        setattr(parent, field, new)


def places(tree: ast.AST) -> Iterator[tuple[ast.AST, str, Any]]:
    """Every (parent, field, expression)."""
    for parent in ast.walk(tree):
        for name, value in ast.iter_fields(parent):
            items = value if isinstance(value, list) else [value]
            yield from ((parent, name, item) for item in items if isinstance(item, ast.expr))


def kind_of(value: Any) -> str:
    """The kind of value that decides what may stand in its place."""
    if isinstance(value, Tensor):
        return "float" if value.is_floating_point() else "count"
    return KINDS.get(type(value).__name__, type(value).__name__)


def changes(
    tree: ast.AST, kinds: Mapping[ast.AST, str], names: Mapping[str, str]
) -> Iterator[Change]:
    """All changes of places that ran.

    `kinds` has the kind of value of each node that ran, "" where it has none; `names` those of the
    function's variables.
    """
    options = _Options(kinds, names)
    for parent, field, old in places(tree):
        if old in kinds and isinstance(getattr(old, "ctx", ast.Load()), ast.Load):
            for rank, new in options.of(old, parent, field):
                yield Change(rank, parent, field, old, new)


def filled(code: str, **holes: ast.expr) -> ast.expr:
    """The expression that `code` writes, with nodes in place of its capital letters."""

    class Fill(ast.NodeTransformer):
        def visit_Name(self, node):
            return holes.get(node.id, node)

    return Fill().visit(ast.parse(code, mode="eval").body)


def _with(node: Any, **fields) -> Any:
    node = copy.copy(node)
    vars(node).update(fields)
    return node


class _Options:
    """What may come in place of an expression."""

    def __init__(self, kinds: Mapping[ast.AST, str], names: Mapping[str, str]):
        self.kinds, self.names = kinds, names

    def of(self, node: Any, parent: ast.AST, field: str) -> Iterator[Option]:
        yield from getattr(self, f"_{type(node).__name__.lower()}", lambda node: ())(node)
        if self._is_value(node, parent, field):
            own = isinstance(node, ast.Name)  # around a name it is less likely
            for rank, codes in enumerate(MISSING.get(self.kinds[node], ()), start=own):
                yield from ((rank, code) for code in codes.split(" ; ") if code)

    def _is_value(self, node: ast.expr, parent: ast.AST, field: str) -> bool:
        """Whether something can stand around it."""
        named = isinstance(parent, ast.keyword) and parent.arg in ("dim", "dtype", "keepdim")
        fixed = isinstance(node, ast.Constant | ast.Tuple | ast.Starred | ast.Slice)
        inside_text = isinstance(parent, ast.JoinedStr | ast.FormattedValue)
        index = isinstance(parent, ast.Subscript) and field == "slice"
        by_number = index and self.kinds[node] != "count"
        return not (field == "func" or named or inside_text or by_number or fixed)

    def _binop(self, node: ast.BinOp) -> Iterator[Option]:
        left, op, right = node.left, node.op, node.right
        for i, other in enumerate(OPERATORS.get(type(op), ())):
            yield min(i, 1), _with(node, op=other())
        yield from ((0, side) for side in (left, right))
        if not isinstance(op, ast.Add | ast.Mult | ast.BitAnd | ast.BitOr):
            yield 0, _with(node, left=right, right=left)
        if isinstance(left, ast.BinOp):  # a + b / c for (a + b) / c
            yield 1, ast.BinOp(left.left, left.op, ast.BinOp(left.right, op, right))

    def _compare(self, node: ast.Compare) -> Iterator[Option]:
        for i, op in enumerate(node.ops):
            for rank, other in enumerate(COMPARISONS[type(op)]):
                yield min(rank, 1), _with(node, ops=[*node.ops[:i], other(), *node.ops[i + 1 :]])

    def _constant(self, node: ast.Constant) -> Iterator[Option]:
        value: Any = node.value
        new: list[Any] = []
        if isinstance(value, bool):
            new = [not value]
        elif isinstance(value, int):
            new = [value + 1, value - 1, 0, 1, -value, 2 * value, float("inf")]
        elif isinstance(value, float):
            tiny = [1e-4, 1e-6, 1e-8, 1e-12] if 0 < value < 0.01 else []
            new = [0.0, 1.0, 2 * value, value / 2, -value, *tiny, 1 - value, value + 1]
            new = [-float("inf"), 1.0] if value == 0 else new
        yield from ((int(i > 4), ast.Constant(v)) for i, v in enumerate(new) if v != value)

    def _name(self, node: ast.Name) -> Iterator[Option]:
        kind = self.kinds[node]
        yield from ((1, n) for n, k in self.names.items() if n != node.id and k == kind)

    def _subscript(self, node: ast.Subscript) -> Iterator[Option]:
        yield 1, node.value
        at = node.slice
        if isinstance(at, ast.Tuple) and len(at.elts) == 2:
            yield 0, _with(node, slice=_with(at, elts=at.elts[::-1]))

    def _call(self, node: ast.Call) -> Iterator[Option]:
        args, owner = node.args, getattr(node.func, "value", None)
        if owner and node.func.attr in OTHER:  # type: ignore[attr-defined]
            yield 0, _with(node, func=_with(node.func, attr=OTHER[node.func.attr]))  # type: ignore
        if owner and getattr(owner, "id", None) not in MODULES:
            yield 0, owner
        for i, argument in enumerate(args):
            for j in range(i):
                swapped = [*args[:j], argument, *args[j + 1 : i], args[j], *args[i + 1 :]]
                yield 1, _with(node, args=swapped)
