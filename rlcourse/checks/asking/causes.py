"""Why the student's code raised: which names hold what at the place where it did.

Only what the frame shows is said: what the names of the expression hold, which name or attribute
does not exist, which key is missing.
"""

import ast
import difflib
import inspect
import re
from collections.abc import Iterable
from typing import Any

from torch import Tensor

from rlcourse.checks.asking.scene import Scene, holds, kind, written

LONGEST = 400  # characters
MOST = 4  # names
OF_DTYPES = r"dtype|scalar type|[Bb]ool|'\w*(?:Long|Int|Float|Double)\w*'|indices|\bcast"
SIMILAR = 0.75  # of two names, one of which may be meant
_OF_ATTRIBUTE = re.compile(r"'([\w.]+)' (?:object )?has no attribute '(\w+)'")


def cause_of(error: BaseException, scene: Scene | None) -> str:
    """One sentence, or nothing."""
    if scene is None:
        return ""
    try:
        said = _cause(error, scene)
    except Exception:  # whatever stands there, a sentence about it ends no check
        return ""
    return said if len(said) <= LONGEST else ""


def _cause(error: BaseException, scene: Scene) -> str:
    message = re.sub(r"\s+", " ", str(error)).strip()
    if isinstance(error, NameError):
        return _unset(error, scene)
    node = scene.node
    if node is None:
        return ""
    if isinstance(error, AttributeError):
        return _missing_attribute(error, scene, node)
    if isinstance(node, ast.Raise | ast.Assert) and not scene.inside:
        return _own_error(node, message)
    if isinstance(error, KeyError):
        return _missing_key(error, scene, node)
    return _held(scene, node, bool(re.search(OF_DTYPES, message)))


def _held(scene: Scene, node: ast.AST, dtypes: bool) -> str:
    """What the names of the expression hold; of tensors the shape, and the dtype if it matters."""
    found = {n: v for n, v in scene.names(node).items() if not callable(v) or _is_tensor(v)}
    if not found or len(found) > MOST:
        return ""
    said = upper(listed(f"`{name}` is {_held_in(value, dtypes)}" for name, value in found.items()))
    sides = _sides(node)
    rows = [n for n, v in found.items() if _is_tensor(v) and v.ndim == 1 and n in sides]
    grids = [v.shape for v in found.values() if _is_tensor(v) and v.ndim == 2]
    if len(rows) == 1 and len({*grids}) == 1 and sides:
        height, width = grids[0]
        if len(found[rows[0]]) == height != width:
            return f"{said}: one number for each row. `{rows[0]}[:, None]` makes it a column."
    return f"{said}."


def _held_in(value: Any, dtypes: bool) -> str:
    held = holds(value)
    return f"{held} of {str(value.dtype)[6:]}" if dtypes and _is_tensor(value) else held


def _is_tensor(value: Any) -> bool:
    return isinstance(value, Tensor)


def _sides(node: ast.AST) -> list[str]:
    """The two sides of an operation, as they are written."""
    if isinstance(node, ast.BinOp):
        return [ast.unparse(node.left), ast.unparse(node.right)]
    if isinstance(node, ast.AugAssign):
        return [ast.unparse(node.target), ast.unparse(node.value)]
    return [
        ast.unparse(part) for part in ast.iter_child_nodes(node) if isinstance(node, ast.Compare)
    ]


def listed(items: Iterable[str]) -> str:
    *first, last = (*items,) or ("",)
    return f"{', '.join(first)} and {last}" if first else last


def upper(text: str) -> str:
    return text[:1].upper() + text[1:]


def _unset(error: NameError, scene: Scene) -> str:
    name = error.name or next(iter(re.findall(r"'(\w+)'", str(error))), "")
    if not name:
        return ""
    if isinstance(error, UnboundLocalError) or "free variable" in str(error):
        return f"`{name}` is a name of this function, and has no value when this line is reached."
    known = [*scene.frame.f_locals, *scene.frame.f_globals]
    meant = difflib.get_close_matches(name, [n for n in known if n[0] != "_"], 1, SIMILAR)
    if meant:
        return f"Nothing is called `{name}` here: is `{meant[0]}` meant?"
    parameters = listed(f"`{p}`" for p in _parameters_of_code(scene))
    given = f", and your function is given {parameters}" if parameters else ""
    return f"Nothing gives `{name}` a value: it is not assigned, imported or defined{given}."


def _parameters_of_code(scene: Scene) -> tuple[str, ...]:
    code = (scene.outer[-1] if scene.outer else scene.frame).f_code
    names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    return tuple(name for name in names if name.isidentifier())


def _missing_attribute(error: AttributeError, scene: Scene, node: ast.AST) -> str:
    owner_type, name = _OF_ATTRIBUTE.findall(str(error))[0]
    attributes = (n for n in ast.walk(node) if isinstance(n, ast.Attribute) and n.attr == name)
    attribute, owner = next(attributes, None), error.obj
    if attribute is not None and scene.inside:  # a class can refuse an attribute by itself
        owner = scene.value(attribute.value)
        refused = owner_type in (type(owner).__name__, getattr(owner, "__name__", ""))
        attribute = attribute if refused else None
    if attribute is None:
        return ""
    if inspect.ismodule(owner):
        what = f"{written(attribute.value)} has nothing called `{name}`"
    else:
        what = f"{upper(written(attribute.value))} is {kind(owner_type)}, which has no `{name}`"
    meant = difflib.get_close_matches(name, dir(owner), 1, SIMILAR)
    return f"{what}: is `{meant[0]}` meant?" if meant else f"{what}."


def _missing_key(error: KeyError, scene: Scene, node: ast.AST) -> str:
    if not isinstance(node, ast.Subscript) or not error.args:
        return ""
    key = holds(error.args[0])
    keys = scene.value(node.value)
    asked = "" if isinstance(node.slice, ast.Constant) else f"{written(node.slice)} is {key}, and "
    known = ""
    if isinstance(keys, dict) and len(keys) <= 8:
        known = f": its keys are {listed(map(holds, keys))}" if keys else ": it is empty"
    return f"{upper(asked)}{written(node.value)} has no such key{known}."


def _own_error(node: ast.Raise | ast.Assert, message: str) -> str:
    if "exceptions must derive" in message:
        return "Only an exception can be raised: `raise ValueError(…)`, say."
    if isinstance(node, ast.Raise) and node.exc is None:
        return ""
    statement = "raise" if isinstance(node, ast.Raise) else "assert"
    return f"Your own `{statement}` stops it, on arguments that are allowed."
