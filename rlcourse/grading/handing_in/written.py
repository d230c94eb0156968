"""What a student wrote in words, wherever in the notebook it ended up.

Colab, Kaggle, VS Code or a person's hand move the answer to a question out of its cell: into a new
one, into a code or raw cell, into the question's own text. A question whose cell is as it was
released is shown with all words that the release does not have, and waits for a person.
"""

import ast
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator

LONGEST = 20_000  # characters of what is shown in the place of one answer
FOUND = "**The cell for this answer is as it was released. Written elsewhere in the notebook:**"
SENTENCE = 4  # words; in or beside code, shorter texts belong to it

_COMMENT = re.compile(r"^([^#\n]*)#(.*)$", re.MULTILINE)
_PROSE = re.compile(r"^[^\n()\[\]{}=#<>]+$", re.MULTILINE)  # of a cell that is not Python
_FORM = re.compile(r"\s*(?:%%\s*(?:\[\w+\])?|@(?:markdown|title)\b|@param\b.*)")  # no words
_ECHO = re.compile(r"^\s*!\s*echo\b(.*)$", re.MULTILINE)
# A cell in another language, such as Markdown, by the magic that it begins with
_OTHER = re.compile(r"\s*(?:%%(?!(?:time|timeit|capture|prun)\b)|%md\b)")
_DATA = re.compile(r"data:[\w/+.;=-]{0,100},[\w+/=%-]{100,}")

Parse = Callable[[str], ast.Module | None]


class Words:
    """Tells the words of a submission, cell by cell, from those of the release."""

    def __init__(self, release: Iterable[tuple[str, str]], parse: Parse):
        """`release` has the kind and the source of each cell; the kind of one for an answer is
        "placeholder". `parse` gives None for what is not Python."""
        self._parse, self._known = parse, set[str]()
        self._left: Counter[str] = Counter()  # how often the release has a line of text
        for kind, source in release:
            lines = [_bare(line) for line in source.splitlines()]
            self._known |= {*lines, *map(_bare, _lines(kind, source, parse))}
            self._left.update(lines if kind in ("markdown", "raw") else ())

    def new(self, kind: str, source: str, function: bool = False) -> str:
        """The lines of a cell that are words for people and new: all of Markdown and raw text; of
        code its comments and texts, or everything if it is not Python, unless it is the cell of a
        `function`."""
        lines = _lines(kind, source, self._parse, function)
        new = (line for line in lines if self._is_new(kind, _bare(line)))
        return says("\n".join(new).strip())

    def _is_new(self, kind: str, line: str) -> bool:
        if kind != "code" and line in self._left:  # a line of the lesson may be an answer, too
            self._left[line] -= 1
            return bool(line) and self._left[line] < 0
        return line not in self._known


def is_blank(answer: str, released: str) -> bool:
    """Whether the cell of an answer has no words, or in another form those that it came with."""
    one, other = ("".join(filter(str.isalnum, text)) for text in (answer, released))
    return not says(answer) or one == other


def says(text: str) -> str:
    """The text if it has words, numbers or pictures, else ""."""
    return text if any(c.isalnum() or c > "\u2190" for c in text) else ""


def without_data(source: str) -> str:
    """Text without the content of pictures, each of which can take megabytes."""
    return _DATA.sub("data:", source)


def shown(words: list[str]) -> str:
    """What stands in the place of an answer whose words are elsewhere."""
    return "\n\n".join([FOUND, *words])[:LONGEST]


def _bare(line: str) -> str:
    return line.strip().lstrip("#").strip()


def _lines(kind: str, source: str, parse: Parse, function: bool = False) -> Iterator[str]:
    """The lines of a cell that may be words for people."""
    tree = parse(source) if kind == "code" and not _OTHER.match(source) else None
    if tree is None and not (function and kind == "code"):
        yield from source.splitlines()
        return
    for before, comment in _COMMENT.findall(source):
        words = _FORM.sub("", comment, count=1) if _FORM.match(comment) else comment
        yield from [words] if not before or _is_sentence(words) else ()
    yield from filter(_is_sentence, _PROSE.findall(source)) if tree is None else ()
    yield from _ECHO.findall(source)
    for text, inside, alone in _texts(tree) if tree else ():
        if not inside or (_is_sentence(text) and (alone or not function)):
            yield from text.splitlines()


def _texts(tree: ast.AST) -> Iterator[tuple[str, bool, bool]]:
    """Texts, whether they are inside of a function, and whether they stand alone."""
    open_ends = [(tree, False)]
    while open_ends:
        node, inside = open_ends.pop()
        inside = inside or isinstance(node, ast.FunctionDef)
        parts = list(ast.iter_child_nodes(node))
        for part in parts:
            if isinstance(part, ast.Constant) and isinstance(part.value, str):
                yield part.value, inside, isinstance(node, ast.Expr)
        open_ends += [(part, inside) for part in reversed(parts)]


def _is_sentence(text: str) -> bool:
    letters = sum(c > "\u2e80" for c in text)  # of languages that put no spaces between words
    return len(text.split()) + letters >= SENTENCE
