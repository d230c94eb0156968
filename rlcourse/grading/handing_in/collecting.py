"""Archives of learning platforms: whose notebook each file is, or why it belongs to nobody.

A platform writes the person's number in front of a file's name; the rest of the name is the
student's choice, and proves nothing. Only an archive's notebooks are read, each with bounds, and
no name in it is ever used as a path. Anything odd becomes a row, and the others are collected.
"""

import hashlib
import re
import zipfile
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path, PurePosixPath

from nbgrader.plugins import ExtractorPlugin, FileNameCollectorPlugin

from rlcourse.grading.books.due import NO_DUE_DATE, due_date, just_late
from rlcourse.grading.books.people import students_by_number
from rlcourse.grading.handing_in.files import LARGEST_FILE
from rlcourse.grading.handing_in.names import one_line, shown, twins, why_no_id
from rlcourse.grading.handing_in.times import NoTime, Times

MOST_MEMBERS = 20_000
# Of the others zipfile unpacks all that it has read, however much that becomes
METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
LARGEST_ARCHIVE = 16 * 2**30  # bytes, of all that is taken out of it
ARCHIVES = (".zip", ".gz", ".tgz", ".tar", ".7z", ".rar", ".bz2", ".xz")
# name_USER_SUBMISSION_file and name_LATE_USER_SUBMISSION_file; a name has no underscore
CANVAS = re.compile(
    r"(?P<owner>[^_/]+?)(?P<late>_late)?_(?P<student>[0-9]+)_[0-9]{3,}_(?P<file>.+)",
    re.IGNORECASE | re.DOTALL,
)
# name_PARTICIPANT_assignsubmission_file_file, or a directory; this name has none either
MOODLE = re.compile(
    r"(?P<owner>[^_/]*)_(?P<student>[0-9]+)_assignsubmission_file_?/?(?P<file>[^/]+)"
)
# What they call the student as whom an instructor tries out an assignment: "Student, Test"
TEST_STUDENTS = {CANVAS: "studenttest", MOODLE: "test student"}
PLAIN = re.compile(r"(?P<student>[^/]+?)_(?P<file>[0-9]{2}_[^/]+)", re.DOTALL)


@dataclass(frozen=True)
class Member:
    """A file, in an archive or by itself, with its owner as its name alone tells."""

    source: Path
    name: str  # within the archive
    student: str | None
    file: str  # what the student called it
    late: bool = False
    in_time: bool = False  # the platform would have said so if it were late
    participant: bool = False  # the student is Moodle's number of a participant
    is_test: bool = False  # the name is that of the platform's test student
    packed: "Packed | None" = field(default=None, repr=False, compare=False)

    def version(self) -> int:
        """The name without the number that Canvas adds to a resubmission: ``lesson-1.ipynb``."""
        found = re.search(r"-([0-9]{1,4})\.ipynb$", self.file)
        return int(found[1]) if found else 0


@dataclass(frozen=True)
class Packed:
    """Where in an open archive a member is; several places where several have its name."""

    archive: zipfile.ZipFile
    places: tuple[zipfile.ZipInfo, ...]


@dataclass(frozen=True)
class Collected:
    """A row: a student's notebook, or the reason why there is none."""

    student: str  # for people
    reason: str = ""
    late: bool = False  # by what the platform wrote into the file's name
    in_time: bool = False  # by the same; if neither, it does not say
    data: bytes = field(default=b"", repr=False)
    time: datetime | None = None  # in UTC, by the table of times
    doubt: str = ""  # why it counts as on time, which it may not be
    path: Path | None = None
    change: str = ""  # "new", "replaced" or "unchanged"

    def __str__(self) -> str:
        return f"{self.student}: {self.said}"

    @property
    def said(self) -> str:
        if self.reason:
            return self.reason
        when = f", handed in {self.time:%Y-%m-%d %H:%M} UTC" if self.time else ", late" * self.late
        change = f" ({self.change})" if self.change else ""
        doubt = f"; {self.doubt}" if self.doubt else ""
        return f"collected{'' if doubt else when}{change}{doubt}"


class Odd(Exception):
    """Why a member is not collected."""


def notebooks(
    sources: Iterable[Path],
    lesson: str,
    known: Sequence[str] = (),
    times: Times | None = None,
    people: Mapping[str, str] | None = None,
) -> Iterator[Collected]:
    """The lesson's notebooks in all `sources`, one for each student, and every oddity.

    `known` are the existing students; a name too similar to one of them is refused. `people` are
    the students whom the class knows by another name than the platform's number.
    """
    with ExitStack() as archives:
        yield from _notebooks(sources, lesson, known, times, people or {}, archives)


def _notebooks(sources, lesson, known, times, people, archives: ExitStack) -> Iterator[Collected]:
    of_student, tests = defaultdict(list), set()
    for source in sorted(sources):
        try:
            for member in _members(source, archives):
                if member.student is None:
                    if member.file.lower().endswith((".ipynb", *ARCHIVES)):
                        yield Collected(
                            shown(member.name), "its name does not say whose notebook it is"
                        )
                elif member.is_test and member.student not in people:
                    tests.add(member.student)
                else:
                    of_student[people.get(member.student, member.student)].append(member)
        except Odd as odd:
            yield Collected(shown(source.name), str(odd))
    yield from (Collected(test, _why_test(test)) for test in sorted(tests))
    confused = twins(of_student, known)
    left = LARGEST_ARCHIVE
    for student, members in sorted(of_student.items()):
        try:
            if reason := why_no_id(student):
                raise Odd(reason)
            if student in confused:
                raise Odd(f"easily confused with {', '.join(map(shown, confused[student]))}")
            member, data = _the_one(members, lesson, left)
            left -= len(data)
            found = Collected(student, late=member.late, in_time=member.in_time, data=data)
            yield _with_time(found, times, member) if times else found
        except Odd as odd:
            yield Collected(shown(student), one_line(str(odd)))


def _why_test(number: str) -> str:
    return (
        "this is the platform's test student; if it is a person, run `nbgrader db student add "
        f"{number} --lms-user-id {number}`, and collect again"
    )


def _with_time(found: Collected, times: Times, member: Member) -> Collected:
    try:
        return replace(found, time=times.of(str(member.student), member.participant))
    except NoTime as doubt:  # then the name that Canvas gave it decides
        said = f"it counts as on time, because {doubt}"
        return replace(found, doubt="" if found.late else said)


def collect(
    sources: Iterable[Path],
    lesson: str,
    into: Path,
    known: Sequence[str] = (),
    people: Mapping[str, str] | None = None,
) -> list[Collected]:
    """Put the lesson's notebooks of all `sources` under `into`, as ``time/STUDENT/LESSON.ipynb``
    where time is "late" or "in time". Returns a ``Collected`` for every student and oddity."""
    rows = []
    for found in notebooks(sources, lesson, known, people=people):
        if not found.reason:
            path = into / ("late" if found.late else "in time") / found.student / f"{lesson}.ipynb"
            path.parent.mkdir(parents=True)
            path.write_bytes(found.data)
            found = replace(found, data=b"", path=path)
        rows.append(found)
    return rows


def _members(source: Path, archives: ExitStack) -> Iterator[Member]:
    """The files of an archive, which stays open, or the one file that `source` is, with their
    owners."""
    if source.suffix.lower() != ".zip":
        if source.suffix.lower() in ARCHIVES:
            raise Odd("not a zip archive: unpack it and pack it again as zip")
        yield _whose(source, source.name, (CANVAS, MOODLE, PLAIN))
        return
    try:
        archive = archives.enter_context(zipfile.ZipFile(source))
        infos = [info for info in archive.infolist() if not info.is_dir()]
    except (OSError, ValueError, zipfile.BadZipFile, NotImplementedError):
        raise Odd("the archive cannot be read: download it again") from None
    if len(infos) > MOST_MEMBERS:
        raise Odd(f"more than {MOST_MEMBERS} files")
    places = defaultdict(list)
    for info in infos:
        if not _is_hidden(info.filename):
            places[info.filename].append(info)
    form = _form_of(list(places))
    flat = Counter(PurePosixPath(name).parent for name in places).most_common(1)
    for name, found in places.items():
        if form is CANVAS and PurePosixPath(name).parent != flat[0][0]:
            yield Member(source, name, None, _last(name))  # Canvas makes no directories
        else:
            yield replace(_whose(source, name, (form,)), packed=Packed(archive, tuple(found)))


def _is_hidden(name: str) -> bool:
    """What systems put into archives: ``__MACOSX/._lesson.ipynb``."""
    parts = PurePosixPath(name).parts
    return any(part.startswith((".", "__MACOSX")) and part != ".." for part in parts)


def _form_of(names: list[str]) -> re.Pattern:
    """The pattern that a platform gives to all names of an archive: the one that most names have,
    so that no single student's name can make it look like another platform's."""
    for form, part in ((MOODLE, _moodles), (CANVAS, _last)):
        fitting = sum(bool(form.fullmatch(part(name))) for name in names)
        if fitting * 2 > len(names):
            return form
    return PLAIN


def _last(name: str) -> str:
    return PurePosixPath(name).name


def _moodles(name: str) -> str:
    """A file, with the directory that names its owner, if any."""
    parts = PurePosixPath(name).parts
    at = next((i for i, part in enumerate(parts) if "_assignsubmission_file" in part), -1)
    return "/".join((parts[at], parts[-1])) if 0 <= at < len(parts) - 1 else _last(name)


def _whose(source: Path, name: str, forms: Sequence[re.Pattern]) -> Member:
    for form in forms:
        found = form.fullmatch(_moodles(name) if form is MOODLE else _last(name))
        if found:
            parts = found.groupdict()
            late, test = bool(parts.get("late")), TEST_STUDENTS.get(form)
            return Member(
                source,
                name,
                found["student"],
                found["file"],
                late=late,
                in_time=form is CANVAS and not late,
                participant=form is MOODLE,
                is_test=test is not None and parts["owner"].strip().casefold() == test,
            )
    return Member(source, name, None, _last(name))


def _the_one(members: list[Member], lesson: str, most: int) -> tuple[Member, bytes]:
    """The one that counts of all the notebooks that a student handed in, and its content."""
    notebooks = [m for m in members if m.file.lower().endswith(".ipynb")]
    if not notebooks:
        packed = any(m.file.lower().endswith(ARCHIVES) for m in members)
        raise Odd("an archive inside the archive: ask for the notebook itself" if packed else
                  "no notebook among the files")  # fmt: skip
    of_lesson = [m for m in notebooks if m.file.lower().startswith(lesson.lower())]
    others = [m for m in notebooks if re.match(r"[0-9]{2}_", m.file)]
    chosen = of_lesson or [m for m in notebooks if not re.match(r"[0-9]{2}_", m.file)]
    if not chosen:
        raise Odd(f"no notebook of {lesson}, only {shown(others[0].file)}")
    newest = max(member.version() for member in chosen)
    last = [member for member in chosen if member.version() == newest]
    found = {hashlib.sha256(data).digest(): (m, data) for m, data in _contents(last, most)}
    if len(found) > 1:
        names = ", ".join(shown(member.file) for member in last[:3])
        raise Odd(f"{len(last)} different notebooks, {names}: keep one of them")
    return next(iter(found.values()))


def _contents(members: list[Member], most: int) -> Iterator[tuple[Member, bytes]]:
    if len(members) > 10:
        raise Odd(f"{len(members)} notebooks: keep one of them")
    for member in members:
        yield member, _content(member, min(LARGEST_FILE, most))


def _content(member: Member, most: int) -> bytes:
    """A member's content, of which at most `most` bytes are read, whatever size it claims."""
    try:
        if member.packed is None:
            with member.source.open("rb") as file:
                data = file.read(most + 1)
        else:
            places = member.packed.places
            if len(places) != 1:
                raise Odd("two files with the same name")
            if places[0].compress_type not in METHODS:
                raise Odd("it is packed by an unusual method: unpack it, and pack it as usual")
            with member.packed.archive.open(places[0]) as file:
                data = file.read(most + 1)
    except Odd:
        raise
    except Exception as error:  # a wrong checksum, a password, an unknown method
        raise Odd(f"it cannot be unpacked ({type(error).__name__})") from None
    if len(data) > most:
        raise Odd(f"larger than {most / 2**20:g} MiB")
    return data


def counted(kinds: Iterable[str], order: Sequence[str]) -> str:
    """How many of each kind there are, in that order: "5 collected, 2 not collected"."""
    counts = Counter(kinds)
    return ", ".join(f"{counts[kind]} {kind}" for kind in order if counts[kind]) or "no files"


# Under `nbgrader zip_collect`


class Extractor(ExtractorPlugin):
    """Sorts the contents of platforms' archives; logs each row."""

    def extract(self, archive_path: str, extracted_path: str) -> None:
        course = self.parent.coursedir
        submitted = Path(course.format_path(course.submitted_directory, ".", ".")).resolve()
        known = [p.name for p in submitted.iterdir()] if submitted.is_dir() else []
        sources = [path for path in Path(archive_path).rglob("*") if path.is_file()]
        people = students_by_number(course)
        rows = collect(sources, course.assignment_id, Path(extracted_path), known, people)
        for row in rows:
            (self.log.warning if row.reason else self.log.info)("%s", row)
        kinds = ["not collected" if r.reason else "late" if r.late else "in time" for r in rows]
        self.log.info("%s", counted(kinds, ("in time", "late", "not collected")))


class Collector(FileNameCollectorPlugin):
    """Takes what ``Extractor`` has sorted; late on the platform is late in nbgrader."""

    def collect(self, submitted_file: str) -> dict | None:
        time, student, name = Path(submitted_file).parts[-3:]
        found = {"student_id": student, "file_id": name.removesuffix(".ipynb")}
        if time == "late":
            directory = self.parent.coursedir
            if due := due_date(directory, directory.assignment_id):
                found["timestamp"] = just_late(due)
            else:
                self.log.warning("%s: collected; %s", student, NO_DUE_DATE)
        return found
