"""The id of a cell of a lesson that nobody grades: made from its text alone.

So it survives edits elsewhere, and tells that a cell is a lesson's own, of this version or another.
"""

import hashlib
import itertools
from collections.abc import Container


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
