"""Cells of notebooks: their ids, and what their code binds.

The id of a cell that nobody grades is made from its text alone. So it survives edits elsewhere, and
tells that a cell is a lesson's own, of this version or another.
"""

import ast
import hashlib
import itertools
import re
from collections.abc import Container

# %magic, !command, ?name, name? and x = !command; whitespace of one line only, or it is quadratic
_IPYTHON = re.compile(
    r"^([^\S\n]*)(?:[%!?].*|[\w.]+\?{1,2}[^\S\n]*|[\w.]+[^\S\n]*=[^\S\n]*[%!].*)$", re.MULTILINE
)


def cell_id(kind: str, source: str, taken: Container[str] = ()) -> str:
    """The id of such a cell in a notebook whose other ids are `taken`."""
    digest = _digest(kind, source)
    repeats = (f"{digest}-{n}" for n in itertools.count(2))
    return next(name for name in itertools.chain([digest], repeats) if name not in taken)


def is_text_of_a_lesson(name: str, kind: str, source: str) -> bool:
    """Whether a cell of this name still has the text that its name was made from."""
    return name.partition("-")[0] == _digest(kind, source)


def _digest(kind: str, source: str) -> str:
    return hashlib.sha256(f"{kind}\n{source}".encode()).hexdigest()[:12]


def without_magics(source: str) -> str:
    """Code that ``ast`` can read, with IPython's own lines taken out."""
    return _IPYTHON.sub(r"\1pass", source)


def names_bound_by(tree: ast.Module) -> set[str]:
    """Names that code gives a value when it runs: by def, class, assignment or import, also inside
    an ``if``, ``try``, ``with`` or loop."""
    found: set[str] = set()
    open_ends: list[ast.AST] = list(tree.body)
    while open_ends:
        node = open_ends.pop()
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            found.add(node.name)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            found.update(alias.asname or alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            found.add(node.id)
        elif not isinstance(node, ast.Lambda):
            open_ends += ast.iter_child_nodes(node)
    return found
