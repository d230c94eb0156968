"""``rlcourse collect``: notebooks from a platform's archive into the course's ``submitted``."""

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from types import MappingProxyType

from rlcourse.files import replace_bytes, write_errors_explained
from rlcourse.grading.books.due import NO_DUE_DATE, just_late, written
from rlcourse.grading.handing_in.student_folder import TIMESTAMP
from rlcourse.grading.names import LONGEST_NAME, one_line
from rlcourse.grading.platforms.collecting import Collected, counted

WITHIN = (
    "it counts as within the extension, but Canvas says only that it is late: check there when it "
    "was handed in"
)


def take(
    found: Iterable[Collected],
    lesson: str,
    submitted: Path,
    due: datetime | None,
    force: bool,
    extended: Container[str] = (),
) -> Iterator[Collected]:
    """Write each notebook to ``submitted/STUDENT/LESSON/``, and next to it when it was handed in.

    A different notebook that is already there stays, unless `force`. Students in `extended` have
    more time. Yields a row for each, without data.
    """
    for row in found:
        if not row.reason:
            row = _take(row, lesson, submitted / row.student / lesson, due, force)
            if row.late and not row.time and row.student in extended:
                row = replace(row, doubt=row.doubt or WITHIN)
        yield replace(row, data=b"")


def _take(row: Collected, lesson: str, folder: Path, due: datetime | None, force: bool):
    path, note = folder / f"{lesson}.ipynb", folder / TIMESTAMP
    if folder.is_symlink() or folder.parent.is_symlink() or path.is_symlink():
        return replace(row, reason=f"{folder} is a symlink to another place: remove it")
    same = path.is_file() and path.read_bytes() == row.data
    if path.exists() and not same and not force:
        late = row.late or (row.time and due and row.time.replace(tzinfo=None) > due)
        there = "a different notebook is already there" + ", and the new one is late" * bool(late)
        return replace(row, reason=f"{there}: --force replaces it")
    change = "unchanged" if same else "replaced" if path.exists() else "new"
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
        elif row.in_time and due and _text(note) == just_late(due):  # the platform said so before
            note.unlink()
            change += ", no longer late"
        if not same:
            replace_bytes(path, row.data)
    return replace(row, path=path, change=change)


def _text(note: Path) -> str:
    try:
        return note.read_text("utf-8").strip() if note.is_file() else ""
    except (OSError, UnicodeDecodeError):
        return ""


def described(rows: Sequence[Collected], names: Mapping[str, str] = MappingProxyType({})) -> str:
    """A table for people: a line for each row, and the number of each kind.

    `names` are those of students; without any, there is no column of names.
    """
    rows = sorted(rows, key=lambda row: row.student)
    called = [one_line(names.get(row.student, ""), LONGEST_NAME) for row in rows]
    columns = [["student", *(row.student for row in rows)]]
    columns += [["name", *called]] if any(called) else []
    widths = [max(map(len, column)) for column in columns]
    lines = []
    for *who, said in zip(*columns, ["status", *(row.said for row in rows)], strict=True):
        cells = (f"{text:{width}}" for text, width in zip(who, widths, strict=True))
        lines.append("  ".join([*cells, said]))
    kinds = ["not collected" if row.reason else "collected" for row in rows]
    return "\n".join([*lines, counted(kinds, ("collected", "not collected"))])
