"""``rlcourse collect``: notebooks from a platform's archive into the course's ``submitted``."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path

from rlcourse.files import replace_bytes, write_errors_explained
from rlcourse.grading.books.due import NO_DUE_DATE, just_late, written
from rlcourse.grading.handing_in.collecting import Collected
from rlcourse.grading.handing_in.handed_in import TIMESTAMP


def take(
    found: Iterable[Collected], lesson: str, submitted: Path, due: datetime | None, force: bool
) -> Iterator[Collected]:
    """Write each notebook to ``submitted/STUDENT/LESSON/``, and next to it when it was handed in.

    A different notebook that is already there stays, unless `force`. Yields a row for each, without
    data.
    """
    for row in found:
        if not row.reason:
            row = _take(row, lesson, submitted / row.student / lesson, due, force)
        yield replace(row, data=b"")


def _take(row: Collected, lesson: str, folder: Path, due: datetime | None, force: bool):
    path, note = folder / f"{lesson}.ipynb", folder / TIMESTAMP
    if folder.is_symlink() or folder.parent.is_symlink() or path.is_symlink():
        return replace(row, reason=f"{folder} is a symlink to another place: remove it")
    same = path.is_file() and path.read_bytes() == row.data
    if path.exists() and not same and not force:
        return replace(row, reason="a different notebook is already there: --force replaces it")
    if row.late and not row.time and not due:
        row = replace(row, doubt=NO_DUE_DATE)
    with write_errors_explained(path):
        folder.mkdir(parents=True, exist_ok=True)
        if row.time:
            replace_bytes(note, written(row.time).encode())
        elif row.late and due:
            replace_bytes(note, just_late(due).encode())
        elif not same:  # the time of another notebook says nothing about this one
            note.unlink(missing_ok=True)
        if not same:
            replace_bytes(path, row.data)
    return replace(row, path=path)


def described(rows: Sequence[Collected]) -> str:
    """A table for people: a line for each row, and the number of each kind."""
    rows = sorted(rows, key=lambda row: row.student)
    width = max(map(len, ["student", *(row.student for row in rows)]))
    lines = [f"{row.student:{width}}  {row.said}" for row in rows]
    kinds = Counter("not collected" if row.reason else "collected" for row in rows)
    counts = ", ".join(f"{count} {kind}" for kind, count in kinds.items()) or "no files"
    return "\n".join([f"{'student':{width}}  status", *lines, counts])
