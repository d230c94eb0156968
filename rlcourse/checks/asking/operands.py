"""What the operands of an expression that raised hold, for each kind of error that shows them."""

import ast
import inspect
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any

from torch import Tensor

from rlcourse.checks.asking.scene import UNKNOWN, Scene, dtype, holds, kind, written

# Operands


def is_of(scene: Scene, node: ast.AST, type_name: str) -> str:
    """ "`dim` is None"; empty if what the name holds now is of another type."""
    value, type_name = scene.value(node), type_name.rpartition(".")[2]
    if value is UNKNOWN:
        return f"{upper(written(node))} is {kind(type_name)}"
    if type(value).__name__ != type_name:
        raise LookupError("it has changed since")
    said = holds(value)
    if isinstance(node, ast.Constant):
        return f"{said} is {kind(type_name)}" if value is not None else "None stands there"
    if isinstance(value, Tensor):
        return f"{written(node)} is a tensor of shape {tuple(value.shape)}"
    plain = value is None or said == kind(type_name)
    return f"{written(node)} is {said}" + ("" if plain else f", {kind(type_name)}")


def _sides(node: ast.AST) -> tuple[ast.AST, ast.AST] | None:
    if isinstance(node, ast.BinOp):
        return node.left, node.right
    if isinstance(node, ast.AugAssign):
        return node.target, node.value
    if isinstance(node, ast.Compare) and len(node.comparators) == 1:
        return node.left, node.comparators[0]
    return None


def _operands(scene: Scene, node: ast.AST, left: str, right: str) -> str:
    sides = _sides(node)
    if sides is None:
        return ""
    said = [is_of(scene, side, name) for side, name in zip(sides, (left, right), strict=True)]
    if left == right == "Tensor":
        return ""
    return f"{said[0]}, and {_lower(said[1])}."


def _one_operand(scene: Scene, node: ast.AST, type_name: str) -> str:
    """What is indexed, called, walked through or counted."""
    if isinstance(node, ast.Subscript | ast.Attribute):
        return f"{is_of(scene, node.value, type_name)}."
    if isinstance(node, ast.UnaryOp):
        return f"{is_of(scene, node.operand, type_name)}."
    if isinstance(node, ast.Name):
        return f"{is_of(scene, node, type_name)}."
    if isinstance(node, ast.Call):
        return _given(scene, node, type_name)
    return ""


def divided_by_zero(scene: Scene, node: ast.AST) -> str:
    if not isinstance(node, ast.BinOp | ast.AugAssign) or scene.inside:
        return ""
    if not isinstance(node.op, ast.Div | ast.FloorDiv | ast.Mod):
        return ""
    divisor = node.right if isinstance(node, ast.BinOp) else node.value
    return f"The divisor {written(divisor)} is 0." if written(divisor) != "a term" else ""


# Calls


def _arguments(node: ast.Call) -> Iterator[tuple[int | str, ast.expr]]:
    """(position or keyword, term) of everything that is passed."""
    yield from enumerate(node.args)
    yield from ((k.arg, k.value) for k in node.keywords if k.arg)


def _name_of(node: ast.Call) -> str:
    return node.func.attr if isinstance(node.func, ast.Attribute) else ast.unparse(node.func)


def _given(scene: Scene, node: ast.AST, type_name: str) -> str:
    """The one argument of that type, where exactly one is known to be of it."""
    if not isinstance(node, ast.Call):
        return ""
    values = [(place, part, scene.value(part)) for place, part in _arguments(node)]
    fitting = [(p, part) for p, part, v in values if type(v).__name__ == type_name]
    unknown = [(p, part) for p, part, v in values if v is UNKNOWN]
    if len(values) == 1 and unknown and _is_builtin(scene.value(node.func)):
        fitting = unknown
    elif len(fitting) != 1 or unknown:
        return ""
    return f"{is_of(scene, fitting[0][1], type_name)}."


def _is_builtin(fn: Any) -> bool:
    return inspect.isbuiltin(fn) or (isinstance(fn, type) and fn.__module__ == "builtins")


def _no_number(scene: Scene, node: ast.AST, *_: str) -> str:
    """`float`, `int` or `item` of more than one number."""
    if not isinstance(node, ast.Call):
        return ""
    term = node.func.value if isinstance(node.func, ast.Attribute) else None
    term = node.args[0] if node.args and _name_of(node) in ("float", "int", "bool") else term
    value = UNKNOWN if term is None else scene.value(term)
    if term is None or not isinstance(value, Tensor):
        return ""
    return f"{written(term)} is {holds(value)}: `{_name_of(node)}` takes a single number."


# Tensors


def _shapes(scene: Scene, node: ast.AST, *_: str) -> str:
    found = scene.tensors(node)
    if not found:
        lists = {n: v for n, v in scene.names(node).items() if isinstance(v, list | tuple)}
        return f"{upper(_each_is(lists))}." if lists and isinstance(node, ast.Call) else ""
    said = upper(_each_is(found))
    rows = [n for n, t in found.items() if t.ndim == 1]
    grids = [t for t in found.values() if t.ndim == 2]
    if len(rows) == 1 and grids and _meet(node, rows[0]):
        vector, shape = found[rows[0]], grids[0].shape
        if len(vector) == shape[0] != shape[1] and all(g.shape == shape for g in grids):
            return f"{said}: one number for each row. `{rows[0]}[:, None]` makes it a column."
    return f"{said}."


def _meet(node: ast.AST, name: str) -> bool:
    """Whether a name is itself a side of an operation."""
    sides = _sides(node)
    return sides is not None and any(ast.unparse(side) == name for side in sides)


def _each_is(values: dict[str, Any]) -> str:
    return listed(f"`{name}` is {holds(value)}" for name, value in values.items())


def _dtypes(differ: bool, wanted: tuple[str, ...], scene: Scene, node: ast.AST, *_: str) -> str:
    """The names that hold such a dtype, or all where they have to be alike and are not."""
    found = {name: dtype(tensor) for name, tensor in scene.tensors(node).items()}
    if not differ:
        found = {name: held for name, held in found.items() if held.startswith(wanted)}
    if not found or (differ and len({*found.values()}) < 2):
        return ""
    return f"{listed(f'`{name}` holds {held}' for name, held in found.items())}."


def _indexed(scene: Scene, node: ast.AST, *_: str) -> str:
    """What is indexed, and by what."""
    if not isinstance(node, ast.Subscript):
        return _shapes(scene, node)
    owner = scene.value(node.value)
    by = {
        name: value
        for name, value in scene.names(node.slice).items()
        if isinstance(value, Tensor | int | float | str | list | tuple) or value is None
    }
    if isinstance(owner, Tensor | list | tuple | str):
        by = {ast.unparse(node.value): owner} | by
    elif isinstance(node.value, ast.Attribute) and node.value.attr == "shape":
        inner = scene.value(node.value.value)
        if isinstance(inner, Tensor):
            by = {ast.unparse(node.value): tuple(inner.shape)}
            return f"`{ast.unparse(node.value)}` is {tuple(inner.shape)}."
    if not by:
        return ""
    said = [f"`{n}` is {_index(v)}" for n, v in by.items()]
    return f"{listed(said)}."


def _index(value: Any) -> str:
    if isinstance(value, Tensor):
        return f"{holds(value)} of {dtype(value)}"
    return holds(value)


def listed(items: Iterable[str]) -> str:
    *first, last = (*items,) or ("",)
    return f"{', '.join(first)} and {last}" if first else last


def upper(text: str) -> str:
    return text[:1].upper() + text[1:]


def _lower(text: str) -> str:
    return text[:1].lower() + text[1:] if text.startswith(("A ", "None stands")) else text


SAID: tuple[tuple[str, Callable[..., str]], ...] = (
    (r"unsupported operand type\(s\) for .+?: '([\w.]+)' and '([\w.]+)'", _operands),
    (r"can only concatenate (\w+) \(not \"([\w.]+)\"\)", _operands),
    (r"not supported between instances of '([\w.]+)' and '([\w.]+)'", _operands),
    (r"bad operand type for (?:unary .|abs\(\)): '([\w.]+)'", _one_operand),
    (r"'([\w.]+)' object is not (?:subscriptable|iterable|reversible|an iterator)", _one_operand),
    (r"'([\w.]+)' object cannot be interpreted as an integer", _one_operand),
    (r"'([\w.]+)' object does not support item (?:assignment|deletion)", _one_operand),
    (r"object of type '([\w.]+)' has no len", _one_operand),
    (r"argument must be a string or a real number, not '([\w.]+)'", _one_operand),
    (r"must be real number, not (\w+)", _one_operand),
    (r"elements? cannot be converted to Scalar|only one element tensors|"
     r"only (?:integer tensors of a single element|single-element tensors)", _no_number),
    (r"out of bounds|out of range for|index out of range|too many indices|valid indices|"
     r"used as indices|shape of the mask|indices must be integers|no such group", _indexed),
    (r"same dtype|(?:expected|found) \w*\s*(?:scalar type|dtype)",
     partial(_dtypes, True, ())),
    (r"on a bool tensor|with a bool tensor|not implemented for 'Bool'",
     partial(_dtypes, False, ("bool",))),
    (r"must be a boolean tensor|condition to be a boolean",
     partial(_dtypes, False, ("float", "int", "uint"))),
    (r"could not infer output dtype|can't be cast to|not implemented for '(?:Long|Int)'",
     partial(_dtypes, False, ("int", "uint", "bool"))),
    (r"[Dd]imension|shape|sizes?\b|\d?D tensors?|scalar outputs|equal size|square matri", _shapes),
)  # fmt: skip
