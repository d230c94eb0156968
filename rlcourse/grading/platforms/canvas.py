"""Canvas: the archive of submissions, and the gradebook that it exports and imports.

Canvas takes every column that it does not know for a new assignment of the whole class, and a grade
in the wrong column is everybody's. So where no assignment fits, or several do, nothing is guessed:
the instructor says which one it is.
"""

import re
from collections import Counter
from collections.abc import Iterable
from pathlib import PurePosixPath

from rlcourse.errors import UserError
from rlcourse.grading.platforms.archives import Archive, last, mostly
from rlcourse.grading.platforms.platform import File, Person, Platform, Worksheet
from rlcourse.grading.table import Table

# name_USER_SUBMISSION_file and name_LATE_USER_SUBMISSION_file; a name has no underscore
NAME = re.compile(r"([^_/]+?)(_late)?_([0-9]+)_[0-9]{3,}_(.+)", re.IGNORECASE | re.DOTALL)
TEST_STUDENT = "studenttest"  # as whom an instructor tries out an assignment
STUDENT = "Student"
POINTS_POSSIBLE = "points possible"  # what the second row says below "Student"
NOBODY = (POINTS_POSSIBLE, "manual posting", "student, test", "test student")
READ_ONLY = "(read only)"  # and below a column that Canvas computes
EXCUSED = "EX"  # what Canvas writes for who does not have to hand in
# Canvas writes the assignment's number behind its name: "Policy gradient (98765)"
NUMBER = re.compile(r"\s*\([0-9]+\)\s*$")
# Words that do not count in an assignment's name
IGNORED = {"a", "an", "the", "lesson", "notebook", "assignment", "homework", "exercises"}


class Canvas(Platform):
    name = "Canvas"
    id_columns = ("ID", "SIS User ID", "SIS Login ID")

    def files(self, archive: Archive, worksheet: Worksheet | None) -> Iterable[File] | None:
        found = {name: NAME.fullmatch(last(name)) for name in archive.names}
        if not mostly(found.values()):
            return None
        folders = Counter(PurePosixPath(name).parent for name in found)
        ((folder, _),) = folders.most_common(1)  # Canvas makes no others
        return [
            _file(archive, name, match if PurePosixPath(name).parent == folder else None)
            for name, match in found.items()
        ]

    def has_made(self, table: Table) -> bool:
        ids = [name for name in self.id_columns if table.column(name) is not None]
        return table.column(STUDENT) is not None and bool(ids)

    def called(self, table: Table, row: list[str]) -> str:
        name = table.field(row, STUDENT)
        return "" if name.casefold() in NOBODY or not self.ids(table, row) else name

    def person(self, table: Table, row: list[str]) -> Person:
        name, _, first = self.called(table, row).partition(",")
        return Person(tuple(self.ids(table, row)), name.strip(), first.strip())

    def column(self, table: Table, lesson: str, title: str, wanted: str | None) -> int:
        free = [i for i in range(len(table.header)) if _is_assignment(table, i)]
        fitting = [i for i in free if fits(table.header[i], lesson, title)]
        if wanted is not None:
            fitting = [i for i in free if table.header[i].strip() == wanted.strip()]
        if len(fitting) == 1:
            return fitting[0]
        few = fitting or free
        names = ", ".join(repr(table.header[i].strip()) for i in few) or "none"
        raise UserError(
            f"{'several columns fit' if fitting else 'no column is clearly that of'} {lesson}; the "
            f"assignments are {names}: say which with --column {lesson.partition('_')[0]}='NAME', "
            "or make the assignment on Canvas and export again"
        )

    def is_fixed(self, table: Table, row: list[str], at: int) -> bool:
        return row[at].strip().upper() == EXCUSED


def _file(archive: Archive, name: str, match: re.Match | None) -> File:
    if not match:
        return File(archive, name, last(name))
    person, late, number, file = match.groups()
    problem = "this is the platform's test student" * (person.casefold() == TEST_STUDENT)
    return File(archive, name, file, number, (number,), problem, late=bool(late))


def fits(header: str, lesson: str, title: str = "") -> bool:
    """Whether a column's name says the lesson's number, its topic or its title, and nothing else.

    Small words, and what a course calls its work, do not count: "Lesson 02: The policy gradient".
    """
    number, _, topic = lesson.partition("_")
    own = number.lstrip("0") or "0"
    text = NUMBER.sub("", header).casefold()
    said = _plain(text)
    if said == own and (text.strip() in (number, own) or "lesson" in text):  # not "Homework 2"
        return True
    names = {_plain(topic), _plain(title)} - {""}
    return any(said in (name, own + name, name + own) for name in names)


def _plain(text: str) -> str:
    """A name's words and numbers in a row, without those that do not count."""
    words = re.findall(r"\d+|[^\W\d_]+", text.casefold())
    return "".join(w.lstrip("0") or w[-1] for w in words if w not in IGNORED)


def _is_assignment(table: Table, at: int) -> bool:
    """Neither what Canvas says of a person, nor what it computes: every assignment has a number,
    and none is read only."""
    possible = (r[at] for r in table.rows if table.field(r, STUDENT).casefold() == POINTS_POSSIBLE)
    return bool(NUMBER.search(table.header[at])) and READ_ONLY not in [p.strip() for p in possible]
