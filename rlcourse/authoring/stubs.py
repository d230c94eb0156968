"""From one function's source, what the student gets and what the solution shows.

The functions of ``rlcourse.algorithms`` exist once. Their own text, split after the docstring,
gives the stub (signature, docstring, ``raise NotImplementedError``) and the solution cell.
"""

import ast
import inspect
import textwrap
from collections.abc import Callable, Iterable

from rlcourse.errors import UserError

STUB = "raise NotImplementedError"
BEGIN, END = "### BEGIN SOLUTION", "### END SOLUTION"


def source_of(function: Callable) -> str:
    """The function's own text, dedented, with its comments and without a trailing newline."""
    try:
        return textwrap.dedent(inspect.getsource(function)).rstrip()
    except (OSError, TypeError) as error:
        raise UserError(f"{function!r} has no source text to make an exercise from.") from error


def stub(function: Callable) -> str:
    """Signature and docstring, and a body that raises NotImplementedError."""
    header, _, indent = _split(source_of(function))
    return f"{header}\n{indent}{STUB}"


def solution(function: Callable, marks: bool = True) -> str:
    """The function as it is; with ``marks``, its body is between nbgrader's solution marks."""
    header, body, indent = _split(source_of(function))
    if not marks:
        return f"{header}\n{body}"
    return f"{header}\n{indent}{BEGIN}\n{body}\n{indent}{END}"


def blank_functions(module_source: str, names: Iterable[str]) -> str:
    """A module's text with the bodies of the named top-level functions replaced by the stub."""
    names, lines = set(names), module_source.splitlines()
    tree = ast.parse(module_source)
    functions = [n for n in tree.body if isinstance(n, ast.FunctionDef) and n.name in names]
    missing = names - {f.name for f in functions}
    if missing:
        raise UserError(f"no function {', '.join(sorted(missing))} in this module.")
    for node in reversed(functions):
        first = _docstring(node)
        lines[first.end_lineno : node.end_lineno] = [" " * first.col_offset + STUB]
    return "\n".join(lines) + "\n"


def _split(source: str) -> tuple[str, str, str]:
    """Header (up to the docstring's last line), body, and the body's indentation."""
    node = ast.parse(source).body[0]
    docstring = _docstring(node)
    lines = source.split("\n")
    header, body = lines[: docstring.end_lineno], lines[docstring.end_lineno :]
    while body and not body[0].strip():
        del body[0]
    return "\n".join(header), "\n".join(body), " " * docstring.col_offset


def _docstring(node: ast.stmt) -> ast.stmt:
    if not isinstance(node, ast.FunctionDef):
        raise UserError(f"line {node.lineno}: an exercise is made from a plain function.")
    if ast.get_docstring(node) is None or len(node.body) < 2:
        raise UserError(f"{node.name} needs a docstring and a body to become an exercise.")
    return node.body[0]
