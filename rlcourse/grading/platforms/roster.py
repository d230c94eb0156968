"""Who is in the class, by a platform's own table: names for Formgrader and for reports.

A student whom the gradebook knows, by any of the ids in the table, keeps that id. Everybody else
gets the first of the platform's ids, or what stands in a column of your choice: a JupyterHub knows
people by their login, The Littlest JupyterHub by ``jupyter-`` and their login. Every id in the
table is kept, so that what a platform files under any of them is theirs.
"""

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


def verify_column(column: str, platform: Platform, table: Table) -> None:
    """UserError if the table has no such column, or one that cannot name people."""
    if column.casefold() == platform.number_column.casefold():
        raise UserError(
            f"--id {column}: {platform.name} numbers people anew in each assignment; name a column "
            f"that stays, such as {platform.id_columns[-1]}"
        )
    if table.column(column) is None:
        raise UserError(
            f"this table has no column {column!r}: name one of {table.header} with --id"
        )


def enter_roster(
    gradebook: Gradebook, course: Path, table: Table, column: str = "", prefix: str = ""
) -> list[Student]:
    """Enter everybody in the table, and return them. Who cannot be entered is in its notes.

    Those whom the gradebook of the course in the directory `course` does not know are called by
    the text in that column, with the prefix before it, or by default by the platform's ids.

    Raises:
        UserError: it is no platform's table, has no such column, or lists nobody.
    """
    platform = platform_of(table)
    if column:
        verify_column(column, platform, table)
    known = students_by_name(students_in(gradebook, course))
    entered: dict[str, Student] = {}
    for name, row in in_a_table(platform, table):
        person = platform.person(table, row)
        text = table.field(row, column) if column else ""
        # A hub that puts a prefix before logins writes these in small letters.
        called = [prefix + (text.lower() if prefix else text), text] if text else []
        ids = tuple(dict.fromkeys([*called, *person.ids]))
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
