"""Whether an answer is the library's own function, under whatever name and behind whatever wrapper.

It is recognized by what runs: an import, an alias, ``functools.partial``, a function that calls the
library's, and one that was made of a copy of its code, all run that code when they are called.
"""

import importlib
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

from rlcourse.checks.asking.calling import written

OURS = str(Path(__file__).parents[2])
Key = tuple[str, int, bytes]


class Borrowing:
    """Observes, as a context, which of the library's functions an answer uses: ``found`` is its
    name, or "".

    `library` maps the names of a lesson's exercises to the library's functions, and `name` is the
    exercise that is answered. Any call of that one counts. A call of another one counts only if it
    does not come from an answer in `namespace`, which is charged for that call itself.
    """

    def __init__(
        self, name: str, library: Mapping[str, Callable | None], namespace: Mapping[str, Any]
    ):
        keys = {other: _key(f.__code__) for other, fn in library.items() if (f := written(fn))}
        self._name, self.found = name, ""
        self._owners = {key: other for other, key in keys.items()}
        self._files = {key[0] for key in keys.values()}
        others = (written(namespace.get(other)) for other in keys if other != name)
        self._others = {_key(function.__code__) for function in others if function}

    def __enter__(self) -> "Borrowing":
        self._looks = sys.getprofile() is None  # a profiler that is already running is left alone
        if self._looks:
            sys.setprofile(self._look)
        return self

    def __exit__(self, *_) -> None:
        if self._looks:
            sys.setprofile(None)

    def _look(self, frame: FrameType, event: str, _: Any) -> None:
        if event != "call" or frame.f_code.co_filename not in self._files:
            return
        owner = self._owners.get(_key(frame.f_code))
        if owner == self._name or (owner and not self.found and self._is_past(frame)):
            self.found = owner

    def _is_past(self, frame: FrameType | None) -> bool:
        """Whether a student's code has made this call, and not within another exercise's answer."""
        caller = frame.f_back.f_code.co_filename if frame and frame.f_back else OURS
        if caller in self._files or caller.startswith(OURS):
            return False
        while frame and _key(frame.f_code) not in self._others:
            frame = frame.f_back
        return frame is None


def _key(code: CodeType) -> Key:
    """What a copy of a function's code shares with it, but the same text elsewhere does not."""
    return code.co_filename, code.co_firstlineno, code.co_code


@contextmanager
def replaced(namespace: dict[str, Any], functions: dict[str, Callable]) -> Iterator[None]:
    """Other functions under these names, within this context."""
    before = {name: namespace[name] for name in functions if name in namespace}
    namespace.update(functions)
    try:
        yield
    finally:
        for name in functions:
            namespace.pop(name, None)
        namespace.update(before)


def function_at(module: str, name: str) -> Callable | None:
    """A function of the library; None if there is none."""
    try:
        found = getattr(importlib.import_module(module), name, None)
    except Exception:
        return None
    return found if callable(found) else None
