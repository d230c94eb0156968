"""Grades as learning platforms take them: Canvas's gradebook, Moodle's worksheet, a plain table.

It is best to fill in a file that the platform exported, since that one has the platform's columns,
names and numbers of people. Rows and columns that are not ours stay as they are. A student who
handed in nothing gets an empty field, never a 0: a 0 is for a person to decide. So does a student
who is still waiting for points by hand, since a grade that goes out too low is hard to take back.
"""

import re
import zipfile
from collections.abc import Collection, Mapping
from pathlib import Path

from rlcourse.errors import UserError
from rlcourse.files import write_errors_explained
from rlcourse.grading.books.grades import ClassGrades, LessonGrade
from rlcourse.grading.books.people import Student
from rlcourse.grading.names import groups_alike, shown, why_no_id
from rlcourse.grading.platforms.columns import CANVAS, NEW, POINTS_POSSIBLE, column_of
from rlcourse.grading.platforms.matching import id_columns, rows_of
from rlcourse.grading.table import PARTICIPANTS, Table, participant_in
from rlcourse.words import amount

EXCUSED = "EX"  # what Canvas writes for who does not have to hand in
CHANGEABLE = "Grade can be changed"  # Moodle's column: "No" for who was graded in its gradebook
WORKSHEET = ("Identifier", "Grade", "Feedback comments")
NUMBER = re.compile(r"[0-9]+")
NAME_IN_ZIP = re.compile(r"[^\w .-]|_")


def plain_table(grades: ClassGrades) -> Table:
    """One row a student and lesson."""
    names = "student", "last name", "first name", "email", "lesson", "handed in (UTC)"
    header = [*names, "late", "penalty", "points", "possible", "waits for a person"]
    rows = []
    for student in grades.students.values():
        for lesson in grades.lessons:
            g = grades.of(student.id, lesson)
            who = [student.id, student.last_name, student.first_name, student.email]
            lateness = [_yes(g.late), amount(g.penalty)]
            points = [_points(g), f"{g.possible:g}"]
            rows.append([*who, lesson, g.handed_in, *lateness, *points, _yes(g.waiting)])
    return Table(header, rows, notes=grades.notes())


def _yes(fact: bool) -> str:
    return "yes" if fact else ""


def _points(grade: LessonGrade) -> str:
    """Points as all platforms read them; empty if nothing was handed in, or points by hand are
    still to come."""
    return "" if grade.missing or grade.waiting else f"{round(grade.points, 4):g}"


# Canvas


def canvas_table(
    grades: ClassGrades, exported: Table | None = None, columns=None, all_lessons: bool = False
) -> Table:
    """Canvas's gradebook with our points, in `exported` where it was exported from there.

    `columns` is {lesson: header} where a lesson's column cannot be told from its name, or ``NEW``
    in place of the header, for a column that is to be added. If nobody chose the lessons but these
    are `all_lessons`, those without a column are left out, with a note.

    Raises:
        UserError: it is not Canvas's, or it is not clear which column is a lesson's.
    """
    table = exported or _canvas_from(grades)
    ids = [i for i in map(table.column, CANVAS[1:4]) if i is not None]
    if not ids or table.column("Student") is None:
        raise UserError(
            "this is not a gradebook exported from Canvas: it needs the columns Student, ID and "
            "SIS Login ID; export it in Canvas under Grades, Export"
        )
    found = rows_of(table, ids, grades.students)
    taken: dict[int, str] = {}
    for lesson in grades.lessons:
        wanted = (columns or {}).get(lesson) or (None if exported else NEW)
        try:
            at = column_of(table, lesson, grades.titles.get(lesson, ""), wanted)
        except UserError as error:
            if wanted or not all_lessons:
                raise
            table.say(f"{lesson} is left out: {error}")
            continue
        if at in taken:
            raise UserError(f"{table.header[at]!r} cannot be both {taken[at]} and {lesson}")
        taken[at] = lesson
        possible = next((grades.of(s, lesson).possible for s in grades.students), None)
        _say_other_maximum(table, at, lesson, possible)
        excused = {s for s, row in found.items() if row[at].strip().upper() == EXCUSED}
        for student, row in found.items():
            if (points := _points(grades.of(student, lesson))) and student not in excused:
                row[at] = points
        if excused:
            table.say(f"{lesson}: excused on Canvas, left as they are: {_listed(excused)}")
    if not taken:
        raise UserError("no lesson was filled in; " + "; ".join(table.notes))
    _say_who_is_not_in_both(table, found, grades, lambda row: name_in_canvas(table, row))
    return table


def _listed(students: set[str]) -> str:
    return ", ".join(map(shown, sorted(students)))


def _is_no(text: str) -> bool:
    return text.strip().casefold() == "no"


def _canvas_from(grades: ClassGrades) -> Table:
    rows = []
    table = Table(list(CANVAS), [["    Points Possible", "", "", "", ""]])
    for s in _told_apart(grades, table):
        name = ", ".join(filter(None, [s.last_name, s.first_name])) or s.id
        number = _number_of(s)
        rows.append([name, *((number, "", "") if number else ("", "", s.id)), ""])
    table.rows += rows
    return table


def _number_of(student: Student) -> str:
    """The platform's number of a student, who may be called so here, too; "" if it is unknown."""
    return next((n for n in (student.platform_id, student.id) if NUMBER.fullmatch(n)), "")


def _told_apart(grades: ClassGrades, table: Table) -> list[Student]:
    """All students except those whom a platform may confuse with others; a note lists these."""
    confused = sorted(set().union(*groups_alike(grades.students)))
    if confused:
        table.say(
            f"left out, because their names are easily confused: {', '.join(map(shown, confused))}"
        )
    return [student for student in grades.students.values() if student.id not in confused]


def _say_other_maximum(table: Table, at: int, lesson: str, possible: float | None) -> None:
    """Fill in the possible points; if the table has others, say so and leave them."""
    who = table.column("Student")
    for row in table.rows:
        if possible is None or row[who or 0].strip().casefold() != POINTS_POSSIBLE:
            continue
        stands = _number(row[at])
        if stands is None:
            row[at] = f"{possible:g}"
        elif stands != possible:
            table.say(_other_maximum(lesson, stands, possible))


def _number(text: str) -> float | None:
    try:
        return float(text.strip().replace(",", "."))
    except ValueError:
        return None


def _other_maximum(lesson: str, stands: float, possible: float) -> str:
    return (
        f"{lesson}: {stands:g} points are possible there, but {possible:g} here; grades are not "
        "scaled, so change the points there"
    )


def name_in_canvas(table: Table, row: list[str]) -> str:
    """Whose row it is; "" for those of the maximum, of the test student and the like."""
    name = row[table.column("Student") or 0].strip()
    others = (POINTS_POSSIBLE, "manual posting", "student, test", "test student")
    known = any(row[i].strip() for i in map(table.column, CANVAS[1:4]) if i is not None)
    return "" if name.casefold() in others or not known else name


def _say_who_is_not_in_both(table: Table, found, grades: ClassGrades, name_of) -> None:
    taken = {id(row) for row in found.values()}
    there = [name for row in table.rows if id(row) not in taken and (name := name_of(row))]
    here = [student for student in grades.students if student not in found]
    if there:
        table.say(f"in the table but not in the gradebook: {'; '.join(there)}")
    if here:
        table.say(f"in the gradebook but not in the table: {', '.join(map(shown, here))}")
    table.notes += grades.notes()


# Moodle


def moodle_table(grades: ClassGrades, worksheet: Table | None = None) -> Table:
    """One lesson's grading worksheet with Grade and Feedback comments filled in.

    Without a worksheet, it is a table for Moodle's import, which asks what each column is.
    """
    if worksheet is None:
        return _moodle_import(grades)
    if len(grades.lessons) != 1:
        raise UserError("a grading worksheet is for one assignment: name one lesson")
    at, comment = (worksheet.column(name) for name in WORKSHEET[1:])
    if at is None or worksheet.column(PARTICIPANTS) is None:
        raise UserError(
            "this is not a grading worksheet from Moodle: it needs the columns Identifier and "
            "Grade; in the assignment, with Moodle in English, choose Download grading worksheet"
        )
    if comment is None:
        worksheet.say("there is no column “Feedback comments”, so no feedback was written")
    found = rows_of(worksheet, id_columns(worksheet), grades.students)
    (lesson,) = grades.lessons
    fixed = _fixed(worksheet, found)
    for student, row in found.items():
        grade = grades.of(student, lesson)
        if (points := _points(grade)) and student not in fixed:
            row[at] = points
            if comment is not None:
                row[comment] = grade.sentence()
    if fixed:
        worksheet.say(
            f"{lesson}: Moodle says that these grades cannot be changed, so they are left as they "
            f"are, and no feedback page is packed: {_listed(fixed)}"
        )
    maximum, possible = worksheet.column("Maximum Grade"), _possible(grades, lesson)
    stands = {n for r in worksheet.rows if maximum is not None and (n := _number(r[maximum]))}
    for other in stands - {possible}:
        worksheet.say(_other_maximum(lesson, other, possible))
    _say_who_is_not_in_both(worksheet, found, grades, lambda row: _full_name(worksheet, row))
    return worksheet


def _fixed(worksheet: Table, rows: Mapping[str, list[str]]) -> set[str]:
    """The students of `rows` whose grades Moodle says it will not change."""
    can = worksheet.column(CHANGEABLE)
    return {s for s, row in rows.items() if can is not None and _is_no(row[can])}


def _possible(grades: ClassGrades, lesson: str) -> float:
    return next((grades.of(s, lesson).possible for s in grades.students), 0.0)


def _full_name(table: Table, row: list[str]) -> str:
    at = table.column("Full name")
    return row[at].strip() if at is not None else row[0]


def _moodle_import(grades: ClassGrades) -> Table:
    header = ["ID number", "Email address", "Full name"]
    for lesson in grades.lessons:
        header += [lesson, f"{lesson} (feedback)"]
    rows: list[list[str]] = []
    table = Table(header, rows, notes=grades.notes())
    for student in _told_apart(grades, table):
        row = [student.platform_id or student.id, student.email, student.name]
        for lesson in grades.lessons:
            grade = grades.of(student.id, lesson)
            points = _points(grade)
            row += [points, grade.sentence() if points else ""]
        rows.append(row)
    return table


def write_moodle_feedback(
    out: Path,
    feedback: Path,
    lesson: str,
    students: Mapping[str, Student],
    worksheet: Table,
    waiting: Collection[str] = (),
) -> list[str]:
    """Put the feedback pages of a lesson into the archive that Moodle takes back.

    Folders are named ``NAME_PARTICIPANT_assignfeedback_file``, by which Moodle finds the person;
    the numbers of participants are those of the assignment's own `worksheet`. Pages of those in
    `waiting` are left out, since they lack points by hand, and so are those whose grade Moodle will
    not change, since the page shows another. Returns the others who have a page and no row there,
    and who are therefore left out, too.
    """
    named = [student for student in students.values() if why_no_id(student.id) is None]
    pages = {s.id: feedback / s.id / lesson / f"{lesson}.html" for s in named}
    with_page = [student for student in named if pages[student.id].is_file()]
    if not with_page:
        raise UserError(
            f"there is no feedback on {lesson} in {feedback}: run `nbgrader generate_feedback "
            f"{lesson}` first"
        )
    with_page = [student for student in with_page if student.id not in waiting]
    rows = rows_of(worksheet, id_columns(worksheet), students)
    fixed = _fixed(worksheet, rows)
    with write_errors_explained(out), zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for student in with_page:
            if student.id in rows and student.id not in fixed:
                name = NAME_IN_ZIP.sub(" ", student.name).strip() or "student"
                number = participant_in(worksheet, rows[student.id])
                folder = f"{name}_{number}_assignfeedback_file"
                archive.write(pages[student.id], f"{folder}/{lesson}.html")
    return [student.id for student in with_page if student.id not in rows]
