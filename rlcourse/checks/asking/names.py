"""Which names a piece of Python reads, by the code that Python makes of it."""

import ast
import builtins
import dis
import inspect
import linecache
import re
import textwrap
from collections.abc import Callable, Iterator
from types import CodeType
from typing import Any

GLOBAL, STORED = ("LOAD_GLOBAL", "LOAD_NAME"), ("STORE_NAME", "STORE_GLOBAL")
LOOK_NAMES_UP = {"locals", "vars", "eval", "exec"}  # at run time


def free_names(source: str) -> set[str]:
    """Names that a text takes from its surroundings: globals that are not builtins.

    Annotations and default values count, since a notebook evaluates them when it runs the cell.
    """
    code = compile(source, "<exercise>", "exec", dont_inherit=True)
    free = names_in(code, GLOBAL) - names_in(code, STORED)
    return {name for name in free if not hasattr(builtins, name)}


def names_in(code: CodeType, operations: tuple[str, ...]) -> set[str]:
    """The names that these operations have in a piece of code, functions inside of it included."""
    return {
        instruction.argval
        for part in _codes(code)
        for instruction in dis.get_instructions(part)
        if instruction.opname in operations
    }


def _codes(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _codes(constant)


def read_in_text(code: CodeType) -> set[str] | None:
    """The names that the text of a function reads, also in lines that are never reached, of which
    Python makes no code; None where that is not known."""
    tree = definition_of(code)
    nodes = ast.walk(tree) if tree else ()
    found = {n.id for n in nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)}
    return None if tree is None or found & LOOK_NAMES_UP else found


def definition_of(code: CodeType) -> ast.Module | None:
    """The text of a function, its lines numbered as in its file; None without source."""
    lines = linecache.getlines(code.co_filename)[code.co_firstlineno - 1 :]
    try:
        tree = ast.parse(textwrap.dedent("".join(inspect.getblock(lines))))
    except (SyntaxError, ValueError):
        return None
    return ast.increment_lineno(tree, code.co_firstlineno - 1) if tree.body else None


def unread_definition(fn: Callable, shell: Any) -> str:
    """A sentence if Python could not read the newest cell of a notebook that defines the function;
    `shell` is IPython's."""
    name = getattr(fn, "__name__", "-")
    defines = re.compile(rf"^\s*(async\s+)?def\s+{re.escape(name)}\b", re.MULTILINE)
    cells = filter(defines.search, reversed(shell.history_manager.input_hist_raw))
    try:
        ast.parse(shell.transform_cell(next(cells, "")))
    except SyntaxError as error:
        return (
            f"The cell that defines {name} has a syntax error in line {error.lineno}, so it did "
            "not run: this is about the definition from before."
        )
    return ""
