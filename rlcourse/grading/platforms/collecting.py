"""``rlcourse collect``: each student's notebook from a platform's archive into ``submitted``.

Anything odd becomes a row that says why there is no notebook, and the others are collected.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from types import MappingProxyType

from rlcourse.evaluation.tables import aligned
from rlcourse.files import replace_bytes, write_errors_explained
from rlcourse.grading.books.due import just_late, written
from rlcourse.grading.books.people import Student, students_by_name
from rlcourse.grading.handing_in.student_folder import TIMESTAMP
from rlcourse.grading.handing_in.untrusted_files import LARGEST_FILE, NOTEBOOKS
from rlcourse.grading.names import LONGEST_NAME, alike, one_line, shown, why_no_id
from rlcourse.grading.platforms.archives import PACKED, Archive, Odd
from rlcourse.grading.platforms.known import files_in
from rlcourse.grading.platforms.matching import student_with
from rlcourse.grading.platforms.platform import File, Worksheet

LARGEST_ARCHIVE = 16 * 2**30  # bytes, of all that is taken out of it
NO_DUE_DATE = "the platform says late, but this lesson has no due date, so it counts as on time"
NOT_LISTED = "not on the roster: run `rlcourse roster` with a new table, then collect again"


@dataclass(frozen=True)
class Collected:
    """A row: a student's notebook, or the reason why there is none."""

    student: str  # for people
    reason: str = ""
    late: bool | None = None  # by what the platform wrote into the file's name, if it does
    data: bytes = field(default=b"", repr=False)
    time: datetime | None = None  # in UTC, by the platform
    doubt: str = ""  # why it counts as on time, which it may not be
    path: Path | None = None
    change: str = ""  # "new", "replaced" or "unchanged"
    beside: tuple[str, ...] = ()  # what else the student handed in, which nobody grades

    @property
    def said(self) -> str:
        if self.reason:
            return self.reason
        when = ", late" if self.late else ""
        if self.time:
            when = f", handed in {self.time:%Y-%m-%d %H:%M} UTC"
        change = f" ({self.change})" if self.change else ""
        doubt = f"; {self.doubt}" if self.doubt else ""
        beside = f"; left out: {', '.join(self.beside)}" if self.beside else ""
        return f"collected{'' if doubt else when}{change}{doubt}{beside}"


def notebooks(
    sources: Iterable[Path],
    lesson: str,
    students: Sequence[Student] = (),
    worksheet: Worksheet | None = None,
    listed: bool = False,
) -> Iterator[Collected]:
    """The lesson's notebooks in all `sources`, one for each student, and every oddity.

    `students` are those in the gradebook; nobody else is collected where a roster has `listed` all.
    """
    with ExitStack() as archives:
        of_student, odd = _by_student(sources, students, worksheet, listed, archives)
        yield from (Collected(who, reason) for who, reason in sorted(odd.items()))
        left = LARGEST_ARCHIVE
        for student, files in sorted(of_student.items()):
            try:
                if reason := why_no_id(student):
                    raise Odd(reason)
                if len(owners := sorted({file.owner for file in files})) > 1:
                    raise Odd(f"two people on the platform fit, {' and '.join(owners[:2])}")
                found = _the_notebook(student, files, lesson, min(LARGEST_FILE, left))
                left -= len(found.data)
                yield found
            except Odd as reason:
                yield Collected(shown(student), one_line(str(reason)))


def _by_student(
    sources: Iterable[Path],
    students: Sequence[Student],
    worksheet: Worksheet | None,
    listed: bool,
    archives: ExitStack,
) -> tuple[dict[str, list[File]], dict[str, str]]:
    """({student: their files}, {whoever or whatever is not collected: why})."""
    known = students_by_name(students)
    of_student, odd = defaultdict(list), {}
    for source in sorted(sources):
        try:
            archive = archives.enter_context(closing(Archive(source)))
            for file in files_in(archive, worksheet):
                if not file.owner:
                    if file.file.lower().endswith((*NOTEBOOKS, *PACKED)):
                        odd[shown(file.name)] = "its name does not say whose notebook it is"
                    continue
                try:
                    if file.problem:
                        raise Odd(file.problem)
                    student = student_with(file.ids, known)
                    if listed and alike(student) not in known:
                        raise Odd(NOT_LISTED)
                    of_student[student].append(file)
                except Odd as reason:
                    odd[one_line(file.owner)] = str(reason)
        except Odd as reason:
            odd[shown(source.name)] = str(reason)
    return of_student, odd


def _the_notebook(student: str, files: list[File], lesson: str, most: int) -> Collected:
    """The one that counts of a student's files: called after the lesson or, without any, after no
    lesson; the newest."""
    notebooks = [file for file in files if file.file.lower().endswith(NOTEBOOKS)]
    if not notebooks:
        packed = any(file.file.lower().endswith(PACKED) for file in files)
        raise Odd("an archive inside the archive: ask for the notebook itself" if packed else
                  "no notebook among the files")  # fmt: skip
    others = [file for file in notebooks if re.match(r"[0-9]{2}_", file.file)]
    chosen = [file for file in notebooks if file.file.lower().startswith(lesson.lower())]
    chosen = chosen or [file for file in notebooks if file not in others]
    if not chosen:
        raise Odd(f"no notebook of {lesson}, only {shown(others[0].file)}")
    newest = max(map(_version, chosen))
    last = [file for file in chosen if _version(file) == newest]
    contents = {file.archive.read(file.name, most): file for file in reversed(last)}
    if len(contents) > 1:
        names = ", ".join(shown(file.file) for file in last[:3])
        raise Odd(f"{len(last)} different notebooks, {names}: keep one of them")
    ((data, file),) = contents.items()
    beside = tuple(shown(other.file) for other in files if other not in chosen)
    return Collected(student, "", file.late, data, file.time, file.doubt, beside=beside)


def _version(file: File) -> int:
    """The number that a platform adds to a resubmission: ``lesson-1.ipynb``."""
    found = re.search(r"-([0-9]{1,4})\.ipynb$", file.file)
    return int(found[1]) if found else 0


# Into ``submitted``


def take(
    found: Iterable[Collected],
    lesson: str,
    submitted: Path,
    due: datetime | None = None,
    force: bool = False,
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
        late = row.late or (row.time and due and row.time.replace(tzinfo=None) > due)
        there = "a different notebook is already there" + ", and the new one is late" * bool(late)
        return replace(row, reason=f"{there}: --force replaces it")
    change = "unchanged" if same else "replaced" if path.exists() else "new"
    if row.late and not due:
        row = replace(row, doubt=NO_DUE_DATE)
    with write_errors_explained(path):
        folder.mkdir(parents=True, exist_ok=True)
        if row.time:
            replace_bytes(note, written(row.time).encode())
        elif row.late and due:
            replace_bytes(note, just_late(due).encode())
        elif not same:  # the time of another notebook says nothing about this one
            note.unlink(missing_ok=True)
        elif row.late is False and due and _text(note) == just_late(due):  # it said so before
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
    """A table for people: a line for each row, with the `names` of students, and how many of each
    kind there are."""
    rows = sorted(rows, key=lambda row: row.student)
    called = [one_line(names.get(row.student, ""), LONGEST_NAME) for row in rows]
    lines = [(row.student, name, row.said) for row, name in zip(rows, called, strict=True)]
    counts = Counter("not collected" if row.reason else "collected" for row in rows)
    kinds = (f"{counts[kind]} {kind}" for kind in ("collected", "not collected") if counts[kind])
    table = aligned([("student", "name" if any(called) else "", "status"), *lines])
    return f"{table}\n{', '.join(kinds) or 'no files'}"
