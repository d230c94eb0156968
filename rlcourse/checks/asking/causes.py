"""Why the student's code raised: which names hold what at the place where it did.

A sentence is said only where the frame shows the cause: an operand is called by name where exactly
one fits what the exception says, and what it holds is looked up. Everywhere else nothing is said,
and the exception's own text has to do.
"""

import ast
import difflib
import inspect
import re

from rlcourse.checks.asking.operands import SAID, divided_by_zero, is_of, listed, upper
from rlcourse.checks.asking.scene import Scene, holds, written

LONGEST = 400  # characters
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
    if isinstance(error, ZeroDivisionError):
        return divided_by_zero(scene, node)
    if isinstance(error, KeyError):
        return _missing_key(error, scene, node)
    for pattern, say in SAID:
        if found := re.search(pattern, message):
            return say(scene, node, *found.groups())
    return ""


# Names


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
        what = f"{is_of(scene, attribute.value, type(owner).__name__)}, which has no `{name}`"
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
