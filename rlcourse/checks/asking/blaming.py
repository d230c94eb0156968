"""The student's line that an error comes from, if no traceback leads to it.

Code that cannot be differentiated fails in the backward pass, after the function has returned.
"""

import dis
import linecache
import re
import sysconfig
import warnings
from collections.abc import Callable, Iterator
from functools import lru_cache
from pathlib import Path
from types import CodeType
from typing import Any

import torch
from torch import Tensor

Place = tuple[str, int, str]  # file, line number, function

FRAME = re.compile(r'File "(.+)", line (\d+), in (\S+)')
_LIBRARIES = tuple(
    str(Path(path).resolve())
    for path in {*sysconfig.get_paths().values(), str(Path(__file__).parents[2])}
    if path
)


@lru_cache(maxsize=1000)  # of a thousand frames of a recursion, all lie in one file
def is_library(filename: str) -> bool:
    """Whether a file is not one that a student writes."""
    return str(Path(filename).resolve()).startswith(_LIBRARIES)


def line_of(place: Place, longest: int) -> dict[str, Any]:
    """What a `Failure` says about the frame."""
    file, number, function = place
    line = linecache.getline(file, number).strip()[:longest]
    return {"line_number": number, "line": line, "function": function}


def place_of_gradient(
    error: BaseException, fn: Callable, again: Callable[[], list[Tensor]]
) -> Place | None:
    """The place that made the part of the graph which the gradient cannot pass.

    `again` calls the function and returns the value to differentiate.
    """
    said = str(error)
    if "backward through the graph a second time" in said:
        return next(_reading(getattr(fn, "__code__", None), "backward"), None)
    if "derivative for" not in said:
        return None
    with warnings.catch_warnings(), torch.autograd.set_detect_anomaly(True, check_nan=False):
        warnings.simplefilter("ignore")
        tensors = again()
    todo: list[Any] = [t.grad_fn for t in tensors]
    seen: set[Any] = set()
    while todo:
        node = todo.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        if "NotImplemented" in node.name():
            return _last_of_theirs(node.metadata.get("traceback_", []))
        todo += [before for before, _ in node.next_functions]
    return None


def _last_of_theirs(frames: list[str]) -> Place | None:
    """The deepest line in a file of the student's."""
    for frame in reversed(frames):
        found = FRAME.search(frame)
        if found and not is_library(found[1]):
            return found[1], int(found[2]), found[3]
    return None


def _reading(code: CodeType | None, name: str) -> Iterator[Place]:
    """The lines of a function that read an attribute of that name."""
    if code is None:
        return
    for instruction in dis.get_instructions(code):
        if instruction.argval == name and instruction.positions and instruction.positions.lineno:
            yield code.co_filename, instruction.positions.lineno, code.co_name
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _reading(constant, name)
