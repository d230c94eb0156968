"""Who is in the class, by Canvas's or Moodle's own table: names for Formgrader and for reports.

A student whom the gradebook knows, by any of the ids in the table, keeps that id. Everybody else
gets Canvas's number, or the first of Moodle's ID number, user name and e-mail address, or what
stands in a column of your choice: a JupyterHub knows people by their login, The Littlest JupyterHub
by ``jupyter-`` and their login. Every id in the table is kept, so that what a platform files under
any of them is theirs.
"""

import re
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from nbgrader.api import Gradebook

from rlcourse.errors import UserError
from rlcourse.grading.books.people import Roster, Student, students_by_name, students_in
from rlcourse.grading.names import alike, one_line, shown, why_no_id
from rlcourse.grading.platforms.matching import REMOVE, id_columns, stable_ids
from rlcourse.grading.platforms.tables import CANVAS, name_in_canvas
from rlcourse.grading.table import PARTICIPANTS, Table

SUFFIX = re.compile(r"[js]r\.?|i{2,3}|iv|ph\.?d\.?", re.IGNORECASE)  # of a name, after a comma


@dataclass(frozen=True)
class Listed:
    """A row of the table: a person by all of their ids, the one to be known by first."""

    ids: tuple[str, ...]
    platform_id: str  # the same in all assignments
    last_name: str
    first_name: str
    email: str = ""


@dataclass(frozen=True)
class Naming:
    """What those are called whom the gradebook does not know: a prefix and a column's text."""

    column: str
    prefix: str = ""

    def index(self, table: Table) -> int:
        """Where the table has that column. UserError if it has none that can name people."""
        if self.column.casefold() == PARTICIPANTS.casefold():
            raise UserError(
                f"--id {self.column}: Moodle numbers people anew in each assignment; name a column "
                "that stays, such as Username"
            )
        if (found := table.column(self.column)) is None:
            raise UserError(f"the table has no column {self.column!r}: name one of {table.header}")
        return found


def enter_roster(
    gradebook: Gradebook, course: Path, table: Table, naming: Naming | None = None
) -> list[Student]:
    """Enter everybody in the table, and return them. Who cannot be entered is in its notes.

    `naming` is for those whom the gradebook of the course in the directory `course` does not know.
    By default it is the one given last; if none ever was, they are called by number.

    Raises:
        UserError: it is neither Canvas's gradebook nor a table of Moodle's, has no such column, or
            lists nobody.
    """
    roster = Roster.of(course)
    if naming is None and roster.naming:
        naming = Naming(**roster.naming)
        if table.column(naming.column) is None:
            raise UserError(
                f"students are named here by the column {naming.column!r}, which this table does "
                f"not have: name another one with --id, of {table.header}"
            )
    known = students_by_name(students_in(gradebook, course))
    taken: set[str] = set()
    entered = []
    for person in _listed(table, naming):
        ours = set().union(*(known.get(alike(i), set()) for i in person.ids))
        if len(ours) > 1:
            both = " and ".join(map(shown, sorted(ours)))
            table.say(
                f"left out, because the gradebook has one person as two students: {both}; "
                f"keep the one with submissions, and remove the other with `{REMOVE}`"
            )
            continue
        student = ours.pop() if ours else person.ids[0]
        if reason := why_no_id(student):
            table.say(f"left out: {shown(student)}, {reason}")
        elif alike(student) in taken:
            table.say(f"left out, because two rows fit one student: {shown(student)}")
        else:
            taken.add(alike(student))
            last, first, mail = (
                one_line(text, 100) for text in (person.last_name, person.first_name, person.email)
            )
            names = {"last_name": last, "first_name": first, "email": mail}
            gradebook.update_or_create_student(student, lms_user_id=person.platform_id, **names)
            entered.append(Student(student, **names, other_ids=person.ids))
    if not entered:
        raise UserError("the table lists nobody who can be entered; " + "; ".join(table.notes))
    ids = roster.ids | {student.id: list(student.other_ids) for student in entered}
    Roster(ids, asdict(naming) if naming else {}).write(course)
    return entered


def _listed(table: Table, naming: Naming | None) -> Iterator[Listed]:
    if table.column(CANVAS[0]) is not None and table.column(CANVAS[1]) is not None:
        return _in_canvas(table, naming)
    if table.column(PARTICIPANTS) is not None and table.column("Full name") is not None:
        id_columns(table)
        return _in_moodle(table, naming)
    raise UserError(
        "this is neither Canvas's exported gradebook, with the columns Student and ID, nor "
        "Moodle's grading worksheet in English, with Identifier and Full name"
    )


def _in_canvas(table: Table, naming: Naming | None) -> Iterator[Listed]:
    for row in table.rows:
        if name := name_in_canvas(table, row):
            last, first = _split(name)
            ids = [text for column in CANVAS[1:4] if (text := table.field(row, column))]
            named = _named(table, row, ids, naming)
            yield Listed(named, table.field(row, CANVAS[1]), last, first)


def _in_moodle(table: Table, naming: Naming | None) -> Iterator[Listed]:
    for row in table.rows:
        name, ids = table.field(row, "Full name"), stable_ids(table, row)
        if not ids:
            table.say(f"left out, because the table has only the name: {name}")
            continue
        last, first = _split_in_moodle(name)
        named = _named(table, row, ids, naming)
        yield Listed(named, ids[0], last, first, table.field(row, "Email address"))


def _split(name: str) -> tuple[str, str]:
    """(last name, first names) of "Doe, Dan" or "Doe, Jr., Dan". Without a comma, all of it counts
    as the last name, because nobody can tell which name is which."""
    parts = [part.strip() for part in name.split(",")]
    suffixes = [part for part in parts[1:] if SUFFIX.fullmatch(part)]
    last, *first = [part for part in parts if part not in suffixes]
    return ", ".join([last, *suffixes]), " ".join(first)


def _split_in_moodle(name: str) -> tuple[str, str]:
    """The same for a full name with the first names first: "Dan Doe", "Gus van der Berg"."""
    last, first = _split(name)
    if not first:
        called, comma, suffix = last.partition(",")
        words = called.split()
        small = (i for i, word in enumerate(words) if i and word[0].islower())
        at = next(small, len(words) - 1)  # a last name begins with its particle
        last, first = " ".join(words[at:]) + comma + suffix, " ".join(words[:at])
    return last, first


def _named(table: Table, row: list[str], ids: list[str], naming: Naming | None) -> tuple[str, ...]:
    """All names of whose row it is, first of all by `naming`."""
    if naming and (text := row[naming.index(table)].strip()):
        # A hub that puts a prefix before logins writes these in small letters.
        login = text.lower() if naming.prefix else text
        ids = [naming.prefix + login, text, *ids]
    return tuple(dict.fromkeys(ids))
