"""Who is in the class, by a platform's own table: names for Formgrader and for reports.

A student whom the gradebook knows, by any of the ids in the table, keeps that id. Everybody else
gets the first of the platform's ids, or what stands in a column of your choice: a JupyterHub knows
people by their login, The Littlest JupyterHub by ``jupyter-`` and their login. Every id in the
table is kept, so that what a platform files under any of them is theirs.
"""

from dataclasses import dataclass
from pathlib import Path

from nbgrader.api import Gradebook

from rlcourse.errors import UserError
from rlcourse.grading.books.people import Student, keep_other_ids, students_by_name, students_in
from rlcourse.grading.names import alike, one_line, shown
from rlcourse.grading.platforms.archives import Odd
from rlcourse.grading.platforms.known import platform_of
from rlcourse.grading.platforms.matching import student_with
from rlcourse.grading.platforms.platform import Platform, in_a_table
from rlcourse.grading.table import Table


@dataclass(frozen=True)
class Naming:
    """What those are called whom the gradebook does not know: a prefix and a column's text."""

    column: str
    prefix: str = ""

    def verify(self, platform: Platform, table: Table) -> None:
        """UserError if the table has no such column, or one that cannot name people."""
        if self.column.casefold() == platform.number_column.casefold():
            raise UserError(
                f"--id {self.column}: {platform.name} numbers people anew in each assignment; name "
                f"a column that stays, such as {platform.id_columns[1]}"
            )
        if table.column(self.column) is None:
            raise UserError(
                f"students are named here by the column {self.column!r}, which this table does not "
                f"have: name one of {table.header} with --id"
            )

    def names(self, table: Table, row: list[str]) -> tuple[str, ...]:
        """What a person is called by it: first with the prefix, and then without."""
        text = table.field(row, self.column)
        # A hub that puts a prefix before logins writes these in small letters.
        return (self.prefix + (text.lower() if self.prefix else text), text) if text else ()


def enter_roster(
    gradebook: Gradebook, course: Path, table: Table, naming: Naming | None = None
) -> list[Student]:
    """Enter everybody in the table, and return them. Who cannot be entered is in its notes.

    `naming` is for those whom the gradebook of the course in the directory `course` does not know;
    by default they are called by the platform's ids.

    Raises:
        UserError: it is no platform's table, has no such column, or lists nobody.
    """
    platform = platform_of(table)
    if naming:
        naming.verify(platform, table)
    known = students_by_name(students_in(gradebook, course))
    entered: dict[str, Student] = {}
    for name, row in in_a_table(platform, table):
        person = platform.person(table, row)
        ids = tuple(dict.fromkeys([*(naming.names(table, row) if naming else ()), *person.ids]))
        try:
            student = student_with(ids, known)
            if alike(student) in entered:
                raise Odd(f"two rows fit one student, {shown(student)}")
        except Odd as reason:
            table.say(f"left out: {name}: {reason}")
            continue
        texts = person.last_name, person.first_name, person.email
        last, first, mail = (one_line(text, 100) for text in texts)
        names = {"last_name": last, "first_name": first, "email": mail}
        number = next(iter(person.ids), "")
        gradebook.update_or_create_student(student, lms_user_id=number, **names)
        entered[alike(student)] = Student(student, **names, other_ids=ids)
    if not entered:
        raise UserError("the table lists nobody who can be entered; " + "; ".join(table.notes))
    students = list(entered.values())
    keep_other_ids(course, {student.id: list(student.other_ids) for student in students})
    return students
