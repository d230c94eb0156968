"""Grades as tables: a plain one, or the table that a platform exported, filled in.

Rows and columns of a platform's table that are not ours stay as they are. A student who handed in
nothing gets an empty field, never a 0: a 0 is for a person to decide. So does a student who is
still waiting for points by hand, since a grade that goes out too low is hard to take back.
"""

from collections.abc import Mapping
from pathlib import Path

from rlcourse.errors import UserError
from rlcourse.grading.books.grades import ClassGrades, LessonGrade
from rlcourse.grading.names import shown, why_no_id
from rlcourse.grading.platforms.known import platform_of
from rlcourse.grading.platforms.matching import rows_of
from rlcourse.grading.platforms.platform import in_a_table
from rlcourse.grading.table import Table
from rlcourse.words import amount


def plain_table(grades: ClassGrades) -> Table:
    """One row a student and lesson."""
    names = "student", "last name", "first name", "email", "lesson", "handed in (UTC)"
    header = [*names, "late", "penalty", "points", "possible", "waits for a person"]
    rows = []
    for student in grades.students.values():
        for lesson in grades.lessons:
            g = grades.of(student.id, lesson)
            who = [student.id, student.last_name, student.first_name, student.email]
            lateness = ["yes" * g.late, amount(g.penalty)]
            points = [_points(g), f"{g.possible:g}"]
            rows.append([*who, lesson, g.handed_in, *lateness, *points, "yes" * g.waiting])
    return Table(header, rows, notes=grades.notes())


def _points(grade: LessonGrade) -> str:
    """Points as all platforms read them; empty if nothing was handed in, or points by hand are
    still to come."""
    return "" if grade.missing or grade.waiting else f"{round(grade.points, 4):g}"


class Filling:
    """A platform's table, which takes the points of some lessons."""

    def __init__(self, table: Table, grades: ClassGrades):
        self.table, self.grades = table, grades
        self.platform = platform_of(table)
        self.rows = rows_of(self.platform, table, grades.students)

    def fill(self, columns: Mapping[str, str]) -> None:
        """Write points, and what there is to say of them where the table has a place for that.

        `columns` is {lesson: header} where a lesson's column cannot be told from its name.

        Raises:
            UserError: it is not clear which column is a lesson's.
        """
        taken: dict[int, str] = {}
        for lesson in self.grades.lessons:
            title = self.grades.titles.get(lesson, "")
            at = self.platform.column(self.table, lesson, title, columns.get(lesson))
            if at in taken:
                header = self.table.header[at]
                raise UserError(f"{header!r} cannot be both {taken[at]} and {lesson}")
            taken[at] = lesson
            self._fill_column(lesson, at)
        self._say_who_is_not_in_both()
        self.table.notes += self.grades.notes()

    def _fill_column(self, lesson: str, at: int) -> None:
        comments = self.platform.comments
        comment = self.table.column(comments) if comments else None
        fixed = self._fixed(at)
        for student, row in self.rows.items():
            grade = self.grades.of(student, lesson)
            if (points := _points(grade)) and student not in fixed:
                row[at] = points
                if comment is not None:
                    row[comment] = grade.sentence()
        if fixed:
            there = f"{self.platform.name} does not change these grades, so they stay as they are"
            self.table.say(f"{lesson}: {there}: {', '.join(map(shown, sorted(fixed)))}")

    def _fixed(self, at: int) -> set[str]:
        return {s for s, row in self.rows.items() if self.platform.is_fixed(self.table, row, at)}

    def _say_who_is_not_in_both(self) -> None:
        taken = {id(row) for row in self.rows.values()}
        people = in_a_table(self.platform, self.table)
        there = [name for name, row in people if id(row) not in taken]
        here = [student for student in self.grades.students if student not in self.rows]
        if there:
            self.table.say(f"in the table but not in the gradebook: {'; '.join(there)}")
        if here:
            self.table.say(f"in the gradebook but not in the table: {', '.join(map(shown, here))}")

    def write_feedback(self, out: Path, feedback: Path) -> None:
        """Pack the pages of the one lesson in the directory `feedback` for the platform.

        Pages of those who wait are left out, since they lack points by hand, and so are those whose
        grade the platform will not change, since the page shows another.
        """
        if len(self.grades.lessons) != 1:
            raise UserError("--feedback is for one lesson: name one")
        (lesson,) = self.grades.lessons
        named = [student for student in self.grades.students if why_no_id(student) is None]
        pages = {s: feedback / s / lesson / f"{lesson}.html" for s in named}
        pages = {s: page for s, page in pages.items() if page.is_file()}
        if not pages:
            raise UserError(
                f"there is no feedback on {lesson} in {feedback}: run `nbgrader generate_feedback "
                f"{lesson}` first"
            )
        waiting = set(self.grades.waiting(lesson))
        fixed = self._fixed(self.platform.column(self.table, lesson, "", None))
        wanted = [s for s in pages if s in self.rows and s not in waiting | fixed]
        packed = [(pages[s], self.grades.students[s].full_name, self.rows[s]) for s in wanted]
        self.platform.write_feedback(out, self.table, packed)
        if waiting:
            names = ", ".join(map(shown, sorted(waiting)))
            self.table.say(f"points by hand are still to come, so no feedback: {names}")
