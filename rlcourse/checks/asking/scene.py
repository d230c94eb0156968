"""What the code looked like where it raised: the expression that was evaluated, and its names.

Read from the frame of the exception, on the side that calls the student's function. Nothing is
evaluated again: a name is looked up, an attribute only in the object's own dictionary.
"""

import ast
import builtins
import linecache
import sysconfig
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from types import FrameType, FunctionType, ModuleType, TracebackType
from typing import Any

from torch import Tensor

_LIBRARIES = tuple(
    str(Path(path).resolve())
    for path in {*sysconfig.get_paths().values(), str(Path(__file__).parents[2])}
    if path
)
LONGEST_TERM = 40  # characters of a piece of code, or of a text
UNKNOWN = object()  # a value that would have to be computed
KINDS = {
    "NoneType": "None", "bool": "a truth value", "float": "a float", "int": "an int",
    "str": "a text", "list": "a list", "tuple": "a tuple", "dict": "a dictionary",
    "Tensor": "a tensor", "function": "a function", "type": "a class", "set": "a set",
    "generator": "a generator", "module": "a module",
}  # fmt: skip


def kind(type_name: str) -> str:
    """A type, as one speaks of a value of it: "a float"."""
    article = "an" if type_name[:1].lower() in "aeiou" or type_name == "SGD" else "a"
    return KINDS.get(type_name, f"{article} {type_name}")


def holds(value: Any) -> str:
    """A value in a few words: "(4, 6)" of a tensor, the number itself of a number."""
    if isinstance(value, Tensor):
        return str(tuple(value.shape)) if value.ndim else "a tensor of a single number"
    if value is None or isinstance(value, bool | float | int):
        return str(value) if len(str(value)) <= LONGEST_TERM else kind(type(value).__name__)
    if isinstance(value, str):
        return repr(value) if len(value) <= LONGEST_TERM else "a text"
    if isinstance(value, list | tuple | dict):
        return f"{kind(type(value).__name__)} of {len(value)}" if len(value) else "empty"
    if isinstance(value, FunctionType | type | ModuleType):
        return kind("type" if isinstance(value, type) else type(value).__name__)
    return kind(type(value).__name__)


@lru_cache(maxsize=1000)  # of a thousand frames of a recursion, all lie in one file
def is_library(filename: str) -> bool:
    """Whether a file is not one that a student writes."""
    return str(Path(filename).resolve()).startswith(_LIBRARIES)


@dataclass(frozen=True)
class Scene:
    """The place in the student's code that an exception comes from."""

    frame: FrameType
    outer: tuple[FrameType, ...]  # those that called it, the nearest first
    line_number: int
    position: int  # of the instruction
    inside: bool  # whether the exception comes from code that was called there

    @classmethod
    def of(cls, traceback: TracebackType | None) -> "Scene | None":
        """The deepest place outside of libraries."""
        places: list[tuple[FrameType, int, int]] = []
        inside = False
        while traceback:
            if not is_library(traceback.tb_frame.f_code.co_filename):
                places.append((traceback.tb_frame, traceback.tb_lineno or 0, traceback.tb_lasti))
                inside = False
            elif places:
                inside = True
            traceback = traceback.tb_next
        if not places:
            return None
        frame, line, position = places[-1]
        return cls(frame, tuple(f for f, _, _ in places[-2::-1]), line, position, inside)

    @cached_property
    def node(self) -> ast.AST | None:
        """The expression, or the statement, whose evaluation raised."""
        positions = list(self.frame.f_code.co_positions())
        start, end, left, right = positions[self.position // 2]
        if start is None or end is None or left is None or right is None:
            return None
        file = self.frame.f_code.co_filename
        lines = [linecache.getline(file, number).encode() for number in range(start, end + 1)]
        lines[-1] = lines[-1][:right]
        lines[0] = lines[0][left:]
        text = b"".join(lines).decode()
        for source, mode in ((f"({text})", "eval"), (text, "exec")):
            try:
                parsed = ast.parse(source, mode=mode)
            except SyntaxError:
                continue
            if isinstance(parsed, ast.Expression):
                return parsed.body
            body = getattr(parsed, "body", [])
            return body[0] if len(body) == 1 else None
        return None

    def value(self, node: ast.AST) -> Any:
        """What a term holds, where that can be looked up; UNKNOWN otherwise."""
        if isinstance(node, ast.Constant):
            return node.value
        if isinstance(node, ast.Name):
            for names in (self.frame.f_locals, self.frame.f_globals, vars(builtins)):
                if node.id in names:
                    return names[node.id]
        if isinstance(node, ast.Attribute):
            owner = self.value(node.value)
            if isinstance(owner, ModuleType):
                return vars(owner).get(node.attr, UNKNOWN)
            if owner is not UNKNOWN and not isinstance(owner, Tensor):
                own = getattr(owner, "__dict__", {})
                return own.get(node.attr, UNKNOWN) if isinstance(own, dict) else UNKNOWN
        return UNKNOWN

    def names(self, node: ast.AST) -> dict[str, Any]:
        """The local names, and their attributes, that a term is made of, with what they hold."""
        bound = {n.id for n in ast.walk(node) if isinstance(n, ast.Name) and _is_bound(n)}
        bound |= {argument.arg for argument in ast.walk(node) if isinstance(argument, ast.arg)}
        found: dict[str, Any] = {}
        for part in ast.walk(node):
            if not isinstance(part, ast.Name | ast.Attribute):
                continue
            root = part
            while isinstance(root, ast.Attribute):
                root = root.value
            if isinstance(root, ast.Name) and root.id in self.frame.f_locals:
                value = UNKNOWN if root.id in bound else self.value(part)
                if value is not UNKNOWN:
                    found[ast.unparse(part)] = value
        return found


def _is_bound(node: ast.Name) -> bool:
    return isinstance(node.ctx, ast.Store)


def written(node: ast.AST) -> str:
    """A piece of code as it stands, if it is short."""
    text = ast.unparse(node)
    return f"`{text}`" if len(text) <= LONGEST_TERM else "a term"
