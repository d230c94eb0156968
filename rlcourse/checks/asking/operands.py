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


def _called(scene: Scene, node: ast.AST, type_name: str) -> str:
    if not isinstance(node, ast.Call) or scene.inside:
        return ""
    said = is_of(scene, node.func, type_name)
    return f"{said}: the parentheses after it call it like a function."


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


def handed_on(scene: Scene, node: ast.AST, type_name: str) -> str:
    """Which parameter of a function gets what that function cannot use."""
    if not isinstance(node, ast.Call):
        return ""
    parameters = _parameters(scene.value(node.func))
    found = [
        (parameters[place] if isinstance(place, int) else place, part)
        for place, part in _arguments(node)
        if type(scene.value(part)).__name__ == type_name
        and (isinstance(place, str) or place < len(parameters))
    ]
    if len(found) != 1:
        return ""
    (parameter, part), name = found[0], _name_of(node)
    return f"`{name}` takes {written(part)} as its `{parameter}`: {is_of(scene, part, type_name)}."


def _parameters(fn: Any) -> list[str]:
    """Of a function written in Python."""
    if not inspect.isfunction(fn):
        return []
    return [name for name in inspect.signature(fn).parameters if name != "self"]


def _signature(scene: Scene, node: ast.AST, called: str, *rest: str) -> str:
    """A missing argument, one too many, or a keyword that is none."""
    if not isinstance(node, ast.Call):
        return ""
    name, parameters = _name_of(node), _parameters(scene.value(node.func))
    if called.rpartition(".")[2] != name or not parameters:
        return ""
    passed = [written(part) for part in node.args]
    passed += [f"`{k.arg}=`" for k in node.keywords if k.arg]
    given = f"gives it {listed(passed)}" if passed else "gives it nothing"
    return f"`{name}` takes {listed(f'`{p}`' for p in parameters)}; this call {given}."


def _wrong_argument(
    scene: Scene, node: ast.AST, called: str, parameter: str, place: str | None, *types: str
) -> str:
    if not isinstance(node, ast.Call) or _name_of(node) != called:
        return ""
    passed = dict(_arguments(node))
    if parameter not in passed and place is None:
        return ""
    part = passed.get(parameter) or passed.get(int(place or 0) - 1)
    if part is None:
        return ""
    return f"{is_of(scene, part, types[-1].split('.')[-1])}, and stands as the `{parameter}` here."


def _combination(scene: Scene, node: ast.AST, called: str, given: str) -> str:
    """torch lists the types that it got: each is said of the argument that it belongs to."""
    if not isinstance(node, ast.Call) or _name_of(node) != called:
        return ""
    types = [
        part.strip().rpartition("=")[2].strip("!") for part in given.split(",") if part.strip()
    ]
    passed = list(_arguments(node))
    if (
        len(types) != len(passed)
        or not passed
        or any(isinstance(a, ast.Starred) for a in node.args)
    ):
        return ""
    said = [
        (f"as `{place}` " if isinstance(place, str) else "")
        + f"{written(part)}, {_what(scene, part, name)}"
        for (place, part), name in zip(passed, types, strict=True)
    ]
    return f"`{called}` does not take such arguments: {'; '.join(said)}."


def _what(scene: Scene, node: ast.AST, type_name: str) -> str:
    value = scene.value(node)
    if isinstance(value, Tensor):
        return f"a tensor of shape {tuple(value.shape)}"
    return kind(type_name)


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


def _no_such_text(scene: Scene, node: ast.AST, text: str) -> str:
    if not isinstance(node, ast.Call) or not node.args or isinstance(node.args[0], ast.Constant):
        return ""
    return f"{upper(written(node.args[0]))} is {text}."


def _outside(scene: Scene, node: ast.AST, *_: str) -> str:
    """A logarithm or a root of what has none."""
    if not isinstance(node, ast.Call) or len(node.args) != 1:
        return ""
    value = scene.value(node.args[0])
    said = f", {holds(value)}," if value is not UNKNOWN else ""
    return f"`{_name_of(node)}` is not defined for {written(node.args[0])}{said} here."


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


def _no_bound(scene: Scene, node: ast.AST, *_: str) -> str:
    if not isinstance(node, ast.Call) or node.args or node.keywords:
        return ""
    return f"`{_name_of(node)}` is called without a bound."


def _empty_list(scene: Scene, node: ast.AST, *_: str) -> str:
    if not isinstance(node, ast.Call) or not node.args:
        return ""
    return f"{upper(written(node.args[0]))} is empty."


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
    (r"'([\w.]+)' object is not callable", _called),
    (r"'([\w.]+)' object is not (?:subscriptable|iterable|reversible|an iterator)", _one_operand),
    (r"'([\w.]+)' object cannot be interpreted as an integer", _one_operand),
    (r"'([\w.]+)' object does not support item (?:assignment|deletion)", _one_operand),
    (r"object of type '([\w.]+)' has no len", _one_operand),
    (r"argument must be a string or a real number, not '([\w.]+)'", _one_operand),
    (r"must be real number, not (\w+)", _one_operand),
    (r"^(\w+)\(\): argument '(\w+)' (?:\(position (\d+)\) )?must be (.+), not ([\w.]+)",
     _wrong_argument),
    (r"^(\w+)\(\) received an invalid combination of arguments - got \((.*?)\), but", _combination),
    (r"^([\w.<>]+)\(\) (?:missing \d+ required|got an unexpected keyword|takes |got multiple)",
     _signature),
    (r"elements? cannot be converted to Scalar|only one element tensors|"
     r"only (?:integer tensors of a single element|single-element tensors)", _no_number),
    (r"could not convert string to float: (.+)$", _no_such_text),
    (r"invalid literal for int\(\) with base 10: (.+)$", _no_such_text),
    (r"math domain error|expected a (?:positive|nonnegative) input|must be a non-negative integer",
     _outside),
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
    (r"non-empty TensorList", _empty_list),
    (r"At least one of 'min' or 'max'", _no_bound),
    (r"[Dd]imension|shape|sizes?\b|\d?D tensors?|scalar outputs|equal size|square matri", _shapes),
)  # fmt: skip
