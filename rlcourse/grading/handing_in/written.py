"""What a student wrote in words, wherever in the notebook it ended up.

Colab, Kaggle, VS Code or a person's hand move the answer to a question out of its cell: into a new
one, into a code or raw cell, into the question's own text. A question whose cell is as it was
released is shown with all words that the release does not have, and waits for a person.
"""

import ast
import re
from collections.abc import Iterable, Set

LONGEST = 20_000  # characters of what is shown in the place of one answer
FOUND = "**The cell for this answer is as it was released. Written elsewhere in the notebook:**"

_COMMENT = re.compile(r"^#(.*)$", re.MULTILINE)  # in a function's body, it explains the code
_FORM = re.compile(r"\s*(%%|@)")  # a mark of VS Code's or Colab's, which is no words


def new_words(kind: str, source: str, known: Set[str], tree: ast.Module | None = None) -> str:
    """The lines of a cell that are words for people and not `known`: all of Markdown and raw text;
    of code its comments and texts outside of functions, or everything if it is not Python.

    Args:
        kind: "markdown", "raw" or "code".
        known: the lines of the release, as ``lines_of`` gives them.
        tree: of a code cell, or None if it cannot be parsed.
    """
    if kind == "code" and tree is not None:
        comments = [c for c in _COMMENT.findall(source) if not _FORM.match(c)]
        source = "\n".join([*comments, *_texts(tree)])
    new = "\n".join(line for line in source.splitlines() if _bare(line) not in known).strip()
    return new if any(c.isalnum() for c in new) else ""


def lines_of(sources: Iterable[str]) -> frozenset[str]:
    """The lines of the cells of a release, for ``new_words``."""
    return frozenset(_bare(line) for source in sources for line in source.splitlines()) - {""}


def shown(words: list[str]) -> str:
    """What stands in the place of an answer whose words are elsewhere."""
    return "\n\n".join([FOUND, *words])[:LONGEST]


def _bare(line: str) -> str:
    return line.strip().lstrip("#").strip()


def _texts(tree: ast.Module) -> Iterable[str]:
    """Texts that stand alone, are printed, or are kept under a name."""
    for node in (node for node in tree.body if isinstance(node, ast.Expr | ast.Assign)):
        for text in ast.walk(node):
            if isinstance(text, ast.Constant) and isinstance(text.value, str):
                yield text.value
