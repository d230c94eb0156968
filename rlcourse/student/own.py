"""In a students' edition, the functions that it lacks are the student's own.

There, the body of each such function of the library is a call of ``written``. It finds the function
in the notebook that is running, or else what was kept when its check passed, so that later lessons
and ``rlcourse train`` run on it, too.
"""

import ast
import base64
import contextlib
import inspect
import sys
import textwrap
import zlib
from collections.abc import Callable
from functools import cache
from importlib import import_module
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

from rlcourse import edition
from rlcourse.checks.names import free_names
from rlcourse.files import replace_bytes
from rlcourse.student import record

PLAIN = (bool, int, float, str, type(None))
NOTEBOOK = "__main__"
_running: set[str] = set()  # the names of functions that are being called


class Unkept(Exception):
    """A function depends on something of its notebook that no text can give back."""


def written(name: str, arguments: dict[str, Any]) -> Any:
    """Call the student's function of that name.

    Functions on which the library itself runs before anybody has written them are packed with it;
    only the library gets these.

    Raises:
        NotImplementedError: there is none yet.
    """
    caller = sys._getframe(2).f_globals.get("__name__", "")
    if name in edition.PACKED and caller.startswith("rlcourse."):
        return packed(name)(**arguments)
    function = None if name in _running else _in_notebook(name) or _kept(name)
    if function is None:
        raise NotImplementedError(
            f"this edition of the course does not have {name}: write yours, and let its check pass"
        )
    _running.add(name)
    try:
        return function(**arguments)
    finally:
        _running.discard(name)


@cache
def packed(name: str) -> Callable:
    """A function that the library itself needs, from the text that comes with this edition."""
    home, text = edition.PACKED[name]
    source = zlib.decompress(base64.b64decode(text)).decode()
    namespace = dict(vars(import_module(home)))
    exec(compile(source, f"<{name}, packed>", "exec"), namespace)
    return namespace[name]


def _in_notebook(name: str) -> Callable | None:
    found = getattr(sys.modules.get(NOTEBOOK), name, None)
    ours = isinstance(found, FunctionType) and found.__module__ == NOTEBOOK
    return found if ours else None


def _path(name: str) -> Path:
    return record.home() / "answers" / f"{name}.py"


def keep(function: Callable, name: str) -> None:
    """Keep a function that passes, with what it uses of its notebook, for other lessons.

    If it uses something that cannot be kept, or the disk is full, it is not.
    """
    with contextlib.suppress(Unkept, OSError, TypeError, SyntaxError):
        text = _as_module(function, name)
        path = _path(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        replace_bytes(path, text.encode())


def _kept(name: str) -> Callable | None:
    try:
        text = _path(name).read_text("utf-8")
    except (OSError, UnicodeDecodeError):
        return None
    return _loaded(name, text)


@cache
def _loaded(name: str, text: str) -> Callable | None:
    namespace: dict[str, Any] = {"__name__": f"answers.{name}"}
    try:
        exec(compile(text, str(_path(name)), "exec"), namespace)
    except Exception:  # a student may have edited it
        return None
    return namespace.get(name)


def _as_module(function: Callable, name: str) -> str:
    """The text of a module with the function and everything that it uses of its notebook."""
    imports: dict[str, str] = {}
    values: dict[str, str] = {}
    texts: dict[str, str] = {}
    _collect(name, function, vars(sys.modules[function.__module__]), imports, values, texts)
    return "\n".join([*imports.values(), *values.values(), "", *reversed(texts.values()), ""])


def _collect(name, value, namespace, imports, values, texts) -> None:
    if name in imports or name in values or name in texts:
        return
    if isinstance(value, ModuleType):
        imports[name] = f"import {value.__name__} as {name}"
    elif isinstance(value, FunctionType | type) and value.__module__ == NOTEBOOK:
        text = textwrap.dedent(inspect.getsource(value))
        texts[name] = text if value.__name__ == name else f"{text}\n{name} = {value.__name__}"
        for other in sorted(free_names(text)):
            if other in namespace:
                _collect(other, namespace[other], namespace, imports, values, texts)
    elif isinstance(value, PLAIN) or (isinstance(value, tuple) and _is_plain(value)):
        values[name] = f"{name} = {value!r}"
    elif getattr(value, "__module__", None) and hasattr(value, "__qualname__"):
        imports[name] = f"from {value.__module__} import {value.__qualname__} as {name}"
    else:
        raise Unkept(name)


def _is_plain(value: tuple) -> bool:
    try:
        return ast.literal_eval(repr(value)) == value
    except (ValueError, SyntaxError):
        return False
