"""Archives of learning platforms: each student's notebook, or why there is none.

Canvas's numbers are people's. Moodle's and Gradescope's are of one assignment, whose worksheet or
metadata says who it is. Anything odd becomes a row, and the others are collected.
"""

import hashlib
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import MappingProxyType

from nbgrader.plugins import ExtractorPlugin, FileNameCollectorPlugin

from rlcourse.courses import current, shipped
from rlcourse.grading.books.due import NO_DUE_DATE, due_date, just_late
from rlcourse.grading.books.people import Student, has_roster, students_by_name, students_of
from rlcourse.grading.handing_in.submission import parse
from rlcourse.grading.handing_in.untrusted_files import LARGEST_FILE, NOTEBOOKS
from rlcourse.grading.handing_in.which_lesson import named_by_cells, owners
from rlcourse.grading.names import alike, one_line, shown, twins, why_no_id
from rlcourse.grading.platforms.matching import Whose, whose
from rlcourse.grading.platforms.members import ARCHIVES, Member, Odd, content_of, members_of
from rlcourse.grading.platforms.times import NoTime, Times
from rlcourse.grading.rejected import Rejected

LARGEST_ARCHIVE = 16 * 2**30  # bytes, of all that is taken out of it
MOST_NAMED = 3  # files that a row names

AHEAD = timedelta(minutes=10)  # by which two clocks may differ


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
    beside: tuple[str, ...] = ()  # what else the student handed in, which nobody grades

    def __str__(self) -> str:
        return f"{self.student}: {self.said}"

    @property
    def said(self) -> str:
        if self.reason:
            return self.reason
        when = f", handed in {self.time:%Y-%m-%d %H:%M} UTC" if self.time else ", late" * self.late
        if self.time and self.time > datetime.now(UTC) + AHEAD:
            when += ", which is in the future: is --zone right?"
        change = f" ({self.change})" if self.change else ""
        doubt = f"; {self.doubt}" if self.doubt else ""
        more = ", …" if len(self.beside) > MOST_NAMED else ""
        beside = f"; left out: {', '.join(self.beside[:MOST_NAMED])}{more}" if self.beside else ""
        return f"collected{'' if doubt else when}{change}{doubt}{beside}"


class Class:
    """Who may have handed in: all whom the gradebook knows, and Moodle's participants."""

    def __init__(
        self,
        students: Sequence[Student] = (),
        participants: Mapping[str, Whose] | None = None,  # None where there is no worksheet
        complete: bool = False,  # there is a roster, so that whoever is not in it has no name yet
        lessons: Mapping[str, str] = MappingProxyType({}),  # by their cells: lessons.owners
    ):
        self.lessons = lessons
        self.participants = participants
        self.complete = complete
        self.known = students_by_name(students)
        self.numbers = {
            student.platform_id: student.id for student in students if student.platform_id
        }

    def whose(self, member: Member) -> Whose:
        """Who handed in a member, or why that is not clear."""
        found = self._whose(member)
        if self.complete and found.student and alike(found.student) not in self.known:
            return Whose(reason=NOT_LISTED)
        return found

    def _whose(self, member: Member) -> Whose:
        number = member.student or ""
        if member.ids is not None:
            return whose(member.ids, self.known)
        if not member.participant:
            return Whose(self.numbers.get(number, number))
        if self.participants is None:
            return Whose(reason=NO_WORKSHEET)
        return self.participants.get(number, Whose(reason=OTHER_WORKSHEET))


NO_TIME_OF_GRADESCOPE = (
    "it counts as on time, because Gradescope's table says no time of it that can be read"
)
NOT_LISTED = "not on the roster: run `rlcourse roster` with a new table, then collect again"
NO_WORKSHEET = (
    "Moodle numbers people anew in each assignment: collect with `rlcourse collect` and this "
    "assignment's grading worksheet, --worksheet"
)
OTHER_WORKSHEET = "the worksheet has no such participant: download it from the same assignment"


def notebooks(
    sources: Iterable[Path],
    lesson: str,
    known: Sequence[str] = (),
    times: Times | None = None,
    people: Class | None = None,
) -> Iterator[Collected]:
    """The lesson's notebooks in all `sources`, one for each student, and every oddity.

    `known` are the existing students; a name too similar to one of them is refused.
    """
    with ExitStack() as archives:
        yield from _notebooks(sources, lesson, known, times, people or Class(), archives)


def _notebooks(sources, lesson, known, times, people: Class, archives) -> Iterator[Collected]:
    of_student, odd = defaultdict(list), {}
    for source in sorted(sources):
        try:
            for member in members_of(source, archives):
                if member.student is None:
                    if member.file.lower().endswith((*NOTEBOOKS, *ARCHIVES)):
                        odd[shown(member.name)] = "its name does not say whose notebook it is"
                elif member.is_test and member.student not in people.numbers:
                    odd[member.student] = _why_test(member.student)
                elif (who := people.whose(member)).reason:
                    odd[_label(member)] = who.reason
                else:
                    of_student[who.student].append(member)
        except Odd as reason:
            odd[shown(source.name)] = str(reason)
    yield from (Collected(who, reason) for who, reason in sorted(odd.items()))
    confused = twins(of_student, known)
    left = LARGEST_ARCHIVE
    for student, members in sorted(of_student.items()):
        try:
            if reason := why_no_id(student):
                raise Odd(reason)
            if student in confused:
                raise Odd(f"easily confused with {', '.join(map(shown, confused[student]))}")
            chosen = _of_the_lesson(members, lesson)
            member, data = _the_one(chosen, lesson, left, people.lessons)
            left -= len(data)
            found = Collected(
                student, late=member.late, in_time=member.in_time, data=data,
                beside=tuple(shown(m.file) for m in members if m not in chosen),
            )  # fmt: skip
            yield _with_time(found, times, member)
        except Odd as reason:
            yield Collected(shown(student), one_line(str(reason)))


def _label(member: Member) -> str:
    """A member for people, whose owner is not known."""
    return f"participant {member.student}" if member.participant else str(member.student)


def _why_test(number: str) -> str:
    return (
        "this is the platform's test student; if it is a person, run `nbgrader db student add "
        f"{number} --lms-user-id {number}`, and collect again"
    )


def _with_time(found: Collected, times: Times | None, member: Member) -> Collected:
    if member.ids is not None:
        doubt = "" if member.time else NO_TIME_OF_GRADESCOPE
        return replace(found, time=member.time, doubt=doubt)
    if times is None:
        return found
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
    people: Class | None = None,
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


def _of_the_lesson(members: list[Member], lesson: str) -> list[Member]:
    """Those that may be the lesson's notebook, by their names: the ones called after the lesson or,
    without any, the ones that are called after no lesson."""
    notebooks = [m for m in members if m.file.lower().endswith(NOTEBOOKS)]
    if not notebooks:
        packed = any(m.file.lower().endswith(ARCHIVES) for m in members)
        raise Odd("an archive inside the archive: ask for the notebook itself" if packed else
                  "no notebook among the files")  # fmt: skip
    of_lesson = [m for m in notebooks if m.file.lower().startswith(lesson.lower())]
    others = [m for m in notebooks if re.match(r"[0-9]{2}_", m.file)]
    chosen = of_lesson or [m for m in notebooks if not re.match(r"[0-9]{2}_", m.file)]
    if not chosen:
        raise Odd(f"no notebook of {lesson}, only {shown(others[0].file)}")
    return chosen


def _the_one(
    chosen: list[Member], lesson: str, most: int, lessons: Mapping[str, str]
) -> tuple[Member, bytes]:
    """The one that counts of a student's notebooks `_of_the_lesson`, and its content."""
    newest = max(member.version() for member in chosen)
    last = [member for member in chosen if member.version() == newest]
    found = {hashlib.sha256(data).digest(): (m, data) for m, data in _contents(last, most)}
    if not chosen[0].file.lower().startswith(lesson.lower()):  # then its cells say whose it is
        of = {key: _lesson_of(data, lessons) or lesson for key, (_, data) in found.items()}
        if lesson not in of.values():
            raise Odd(f"no notebook of {lesson}: the cells of {shown(last[0].file)} are "
                      f"those of {next(iter(of.values()))}")  # fmt: skip
        found = {key: one for key, one in found.items() if of[key] == lesson}
    if len(found) > 1:
        names = ", ".join(shown(member.file) for member in last[:3])
        raise Odd(f"{len(last)} different notebooks, {names}: keep one of them")
    return next(iter(found.values()))


def _lesson_of(data: bytes, lessons: Mapping[str, str]) -> str | None:
    try:
        return named_by_cells(parse(data), lessons)
    except Rejected:  # which is said where it is graded
        return None


def _contents(members: list[Member], most: int) -> Iterator[tuple[Member, bytes]]:
    if len(members) > 10:
        raise Odd(f"{len(members)} notebooks: keep one of them")
    for member in members:
        yield member, content_of(member, min(LARGEST_FILE, most))


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
        lessons = owners(current(Path(course.root)), shipped())
        people = Class(students_of(course), complete=has_roster(course), lessons=lessons)
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
