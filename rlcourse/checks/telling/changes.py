"""What may stand in one place of a function instead, as slips of the pen would have it.

Each change puts another node of the syntax tree, which fits the kind of value that was seen there,
in the place of one. The rank says how likely students are to have slipped in this way: 0 comes
first.
"""

import ast
import copy
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from torch import Tensor

NUMBERS = ("float", "number", "integer")  # kinds of values that can be added and multiplied
KINDS = {
    "bool": "truth", "int": "integer", "float": "number", "str": "str", "list": "list",
    "tuple": "list",
}  # fmt: skip
OPERATORS = {
    ast.Add: (ast.Sub, ast.Mult), ast.Sub: (ast.Add, ast.Div, ast.Mult),
    ast.Mult: (ast.Div, ast.Add, ast.Sub), ast.Div: (ast.Mult, ast.FloorDiv, ast.Sub),
    ast.Pow: (ast.Mult,), ast.FloorDiv: (ast.Div, ast.Mod), ast.Mod: (ast.FloorDiv,),
    ast.BitAnd: (ast.BitOr,), ast.BitOr: (ast.BitAnd,), ast.MatMult: (ast.Mult,),
    ast.And: (ast.Or,), ast.Or: (ast.And,),
}  # fmt: skip
COMPARISONS = {
    ast.Lt: (ast.LtE, ast.Gt, ast.GtE, ast.Eq), ast.LtE: (ast.Lt, ast.GtE, ast.Gt, ast.Eq),
    ast.Gt: (ast.GtE, ast.Lt, ast.LtE, ast.NotEq), ast.GtE: (ast.Gt, ast.LtE, ast.Lt, ast.Eq),
    ast.Eq: (ast.NotEq, ast.LtE, ast.GtE), ast.NotEq: (ast.Eq, ast.Gt, ast.Lt),
    ast.Is: (ast.IsNot,), ast.IsNot: (ast.Is,), ast.In: (ast.NotIn, ast.Eq), ast.NotIn: (ast.In,),
}  # fmt: skip
ALIKE = [
    words.split()
    for words in (
        "sum mean std var amax amin prod median logsumexp", "max min", "maximum minimum", "any all",
        "exp log expm1 log1p", "softmax log_softmax", "sigmoid logsigmoid", "cumsum cumprod flip",
        "floor ceil round trunc", "argmax argmin", "sort argsort", "repeat repeat_interleave",
        "square sqrt abs", "log log2 log10", "search match fullmatch findall", "find rfind",
        "split rsplit", "strip lstrip rstrip", "unsqueeze squeeze", "append extend", "comb perm",
        "zeros_like ones_like", "new_zeros new_ones", "float double", "clamp_min clamp_max",
    )
]  # fmt: skip
LIKELY = ("sum", "mean", "min", "max", "minimum", "maximum")  # to be meant in place of another
# What may be missing around a value X of a kind, by rank. M is a mask.
MISSING = {
    "float": (
        "-X ; X.detach()",
        "X * M ; X.exp() ; X.log() ; X.abs() ; X.clamp(min=1) ; X.clamp(min=0) ; 1 - X ; X.mean()",
        "X.sum() ; X.clamp(max=1) ; X.clamp(max=0) ; X.sum(-1) ; X.mean(-1) ; X.sum(0) ; X.mean(0)"
        " ; X.mT ; X[:, None] ; X ** 2 ; X.sqrt() ; 1 / X ; X + 1 ; X - 1 ; X / 2 ; X.clone()"
        " ; X.masked_fill(~M.bool(), 0) ; X.double() ; X.float() ; X.cumsum(-1) ; X.flip(-1)",
    ),
    "count": (
        "",
        "~X ; X.clamp(min=1) ; X * M ; X.bool() ; X.double() ; X.float()",
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
MASKS = ("mask", "m", "keep", "valid", "real")
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

    @property
    def line(self) -> int:
        return getattr(self.old, "lineno", getattr(self.parent, "lineno", 0))

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
    """Every (parent, field, node)."""
    for parent in ast.walk(tree):
        for name, value in ast.iter_fields(parent):
            items = value if isinstance(value, list) else [value]
            yield from ((parent, name, item) for item in items if isinstance(item, ast.AST))


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
    options = _Options(kinds, names, tree)
    for parent, field, old in places(tree):
        if old in kinds:
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


def _without(items: list, i: int) -> list:
    return items[:i] + items[i + 1 :]


class _Options:
    """What may come in place of a node."""

    def __init__(self, kinds: Mapping[ast.AST, str], names: Mapping[str, str], tree: ast.AST):
        self.kinds, self.names = kinds, names
        texts = {n.value for n in ast.walk(tree) if isinstance(n, ast.Constant)}
        self.texts = sorted(text for text in texts if isinstance(text, str))
        self.masks = [n for n in names if n in MASKS and names[n] in ("count", "float")]

    def of(self, node: Any, parent: ast.AST, field: str) -> Iterator[Option]:
        if isinstance(node, ast.AugAssign):
            yield from ((0, _with(node, op=other())) for other in OPERATORS.get(type(node.op), ()))
        if isinstance(node, ast.stmt):
            if not isinstance(node, ast.Return | ast.FunctionDef | ast.Import | ast.ImportFrom):
                yield 1, ast.Pass()
        elif isinstance(node, ast.expr) and isinstance(getattr(node, "ctx", ast.Load()), ast.Load):
            yield from getattr(self, f"_{type(node).__name__.lower()}", lambda node: ())(node)
            if field in ("test", "ifs"):
                yield from ((0, "not X"), (2, "True"), (2, "False"))
            if self._is_value(node, parent, field):
                yield from self._around(node)

    def _is_value(self, node: ast.expr, parent: ast.AST, field: str) -> bool:
        """Whether something can stand around it."""
        named = isinstance(parent, ast.keyword) and parent.arg in ("dim", "dtype", "keepdim")
        fixed = isinstance(node, ast.Constant | ast.Tuple | ast.Starred | ast.Slice)
        inside_text = isinstance(parent, ast.JoinedStr | ast.FormattedValue)
        index = isinstance(parent, ast.Subscript) and field == "slice"
        by_number = index and self.kinds.get(node) != "count"
        return not (field == "func" or named or inside_text or by_number or fixed)

    def _around(self, node: ast.expr) -> Iterator[Option]:
        kind, own = self.kinds.get(node, ""), getattr(node, "id", "")
        for rank, codes in enumerate(MISSING.get(kind, ()), start=bool(own)):
            for code in filter(None, codes.split(" ; ")):  # around a name it is less likely
                if "M" not in code:
                    yield rank, code
                else:
                    yield from ((rank, code.replace("M", m)) for m in self.masks if m != own)
        for name, other in self.names.items() if kind in NUMBERS else ():
            if name != own and other in NUMBERS:
                if not own and other == kind:
                    yield LEAST_LIKELY, name
                yield from ((LEAST_LIKELY, f"X {op} {name}") for op in "*/+-")

    def _binop(self, node: ast.BinOp) -> Iterator[Option]:
        left, op, right = node.left, node.op, node.right
        for i, other in enumerate(OPERATORS.get(type(op), ())):
            yield min(i, 1), _with(node, op=other())
        yield from ((0, side) for side in (left, right))
        if not isinstance(op, ast.Add | ast.Mult | ast.BitAnd | ast.BitOr):
            yield 0, _with(node, left=right, right=left)
        if isinstance(op, ast.Add) and isinstance(right, ast.Constant):  # n + ε for n or 1
            yield 1, filled("X.clamp(min=1)", X=left)
        if isinstance(left, ast.BinOp):  # a / b * c for a / (b * c)
            yield 1, ast.BinOp(left.left, left.op, ast.BinOp(left.right, op, right))
        if isinstance(right, ast.BinOp):
            yield 1, ast.BinOp(ast.BinOp(left, op, right.left), right.op, right.right)

    def _unaryop(self, node: ast.UnaryOp) -> Iterator[Option]:
        yield 0, node.operand
        if isinstance(node.op, ast.USub) and isinstance(node.operand, ast.Constant):
            value: Any = node.operand.value
            yield from ((0, code) for code in ("0", "1", f"-{value + 1}"))

    def _boolop(self, node: ast.BoolOp) -> Iterator[Option]:
        yield from ((0, _with(node, op=other())) for other in OPERATORS[type(node.op)])
        for i in range(len(node.values)):
            rest = _without(node.values, i)
            yield 1, _with(node, values=rest) if len(rest) > 1 else rest[0]

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
        elif isinstance(value, str):
            new = [*self.texts, *(["sum", "mean", "none"] if value in ("sum", "mean") else [])]
        elif value is None:
            new = [0, 1, -1]
        yield from ((int(i > 4), ast.Constant(v)) for i, v in enumerate(new) if v != value)
        for name, kind in self.names.items():
            if kind == self.kinds.get(node) and kind in ("integer", "number", "str"):
                yield 1, name

    def _name(self, node: ast.Name) -> Iterator[Option]:
        kind = self.kinds.get(node)
        yield from ((1, n) for n, k in self.names.items() if n != node.id and k == kind)

    def _attribute(self, node: ast.Attribute) -> Iterator[Option]:
        if node.attr in ("float32", "float64", "float", "double", "long", "bool", "int64"):
            others = sorted({"float32", "float64"} - {node.attr})
            yield from ((0, _with(node, attr=other)) for other in others)

    def _ifexp(self, node: ast.IfExp) -> Iterator[Option]:
        yield 0, _with(node, body=node.orelse, orelse=node.body)

    def _subscript(self, node: ast.Subscript) -> Iterator[Option]:
        yield 1, node.value
        at = node.slice
        if isinstance(at, ast.Tuple) and len(at.elts) == 2:
            yield 0, _with(node, slice=_with(at, elts=at.elts[::-1]))
        if isinstance(at, ast.Constant) and at.value is None:
            yield 0, filled("X[:, None]", X=node.value)
        if not isinstance(at, ast.Slice | ast.Tuple | ast.Constant):
            yield from ((1, _with(node, slice=filled(f"X {sign} 1", X=at))) for sign in "+-")

    def _slice(self, node: ast.Slice) -> Iterator[Option]:
        for end, first in (("lower", "1"), ("upper", "-1")):
            bound = getattr(node, end)
            for code in (first,) if bound is None else ("X + 1", "X - 1"):
                yield 0, _with(node, **{end: filled(code, X=bound)})
            if bound:
                yield 1, _with(node, **{end: None})

    def _call(self, node: ast.Call) -> Iterator[Option]:
        called = getattr(node.func, "attr", getattr(node.func, "id", ""))
        args, owner = node.args, getattr(node.func, "value", None)
        for other in dict.fromkeys(o for words in ALIKE if called in words for o in words):
            func = _with(node.func, attr=other) if owner else filled(other)
            if other != called:
                yield int(other not in LIKELY), _with(node, func=func)
        if owner and getattr(owner, "id", None) not in MODULES:
            yield 0, owner
        for i, argument in enumerate(args):
            if not isinstance(argument, ast.Starred | ast.GeneratorExp):
                yield 0 if len(args) == 1 and not owner else 2, argument
            yield 1, _with(node, args=_without(args, i))
            for j in range(i):
                swapped = [*args[:j], argument, *args[j + 1 : i], args[j], *args[i + 1 :]]
                yield 1, _with(node, args=swapped)
            for sign in "+-" if called == "range" else "":
                moved = filled(f"X {sign} 1", X=argument)
                yield 0, _with(node, args=[*args[:i], moved, *args[i + 1 :]])
        if called == "range":
            yield 0, "reversed(X)"
        for i, option in enumerate(node.keywords):
            yield 1, _with(node, keywords=_without(node.keywords, i))
            if other := {"min": "max", "max": "min"}.get(option.arg or ""):
                there = [*node.keywords[:i], _with(option, arg=other), *node.keywords[i + 1 :]]
                yield 1, _with(node, keywords=there)
        added = ["correction=0", "correction=1"] if called in ("std", "var") else []
        if called in ("sum", "mean", "amax", "amin", "logsumexp", "softmax", "log_softmax"):
            added += ["keepdim=True", "dim=-1", "dim=0"]
        added += ["reverse=True", "descending=True", "stable=True"] if "sort" in called else []
        for option, value in (word.split("=") for word in added):
            if option not in [k.arg for k in node.keywords]:
                yield 1, _with(node, keywords=[*node.keywords, ast.keyword(option, filled(value))])
