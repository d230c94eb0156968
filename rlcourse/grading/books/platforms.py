"""Grades as learning platforms take them: Canvas's gradebook, Moodle's worksheet, a plain table.

It is best to fill in a file that the platform exported, since that one has the platform's columns,
names and numbers of people. Rows and columns that are not ours stay as they are. A student who
handed in nothing gets an empty field, never a 0: a 0 is for a person to decide. So does a student
who is still waiting for points by hand, since a grade that goes out too low is hard to take back.
"""

import re
import zipfile
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path

from rlcourse.errors import UserError
from rlcourse.files import write_errors_explained
from rlcourse.grading.books.columns import CANVAS, NEW, POINTS_POSSIBLE, column_of
from rlcourse.grading.books.grades import ClassGrades, LessonGrade
from rlcourse.grading.books.people import Student
from rlcourse.grading.books.table import PARTICIPANT, WORKSHEET_IDS, Table
from rlcourse.grading.handing_in.names import alike, groups_alike, one_line, shown, why_no_id

EXCUSED = "EX"  # what Canvas writes for who does not have to hand in
CHANGEABLE = "Grade can be changed"  # Moodle's column: "No" for who was graded in its gradebook
WORKSHEET = ("Identifier", "Grade", "Feedback comments")
NUMBER = re.compile(r"[0-9]+")
REMOVE = "nbgrader db student remove ID"
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
            what = [g.handed_in, _yes(g.late), f"{g.penalty:g}", _points(g), f"{g.possible:g}"]
            rows.append([*who, lesson, *what, _yes(g.waiting)])
    return Table(header, rows, notes=grades.notes())


def _yes(fact: bool) -> str:
    return "yes" if fact else ""


def _points(grade: LessonGrade) -> str:
    """Points as all platforms read them; empty if nothing was handed in, or points by hand are
    still to come."""
    return "" if grade.missing or grade.waiting else f"{round(grade.points, 4):g}"


# Canvas


def canvas_table(grades: ClassGrades, exported: Table | None = None, columns=None) -> Table:
    """Canvas's gradebook with our points, in `exported` where it was exported from there.

    `columns` is {lesson: header} where a lesson's column cannot be told from its name, or ``NEW``
    in place of the header, for a column that is to be added.
    """
    table = exported or _canvas_from(grades)
    ids = [i for i in map(table.column, CANVAS[1:4]) if i is not None]
    if not ids or table.column("Student") is None:
        raise UserError(
            "this is not a gradebook exported from Canvas: it needs the columns Student, ID and "
            "SIS Login ID; export it in Canvas under Grades, Export"
        )
    found = _rows_of(table, ids, grades)
    taken: dict[int, str] = {}
    for lesson in grades.lessons:
        wanted = (columns or {}).get(lesson) or (None if exported else NEW)
        at = column_of(table, lesson, grades.titles.get(lesson, ""), wanted)
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
    return next((n for n in (student.number, student.id) if NUMBER.fullmatch(n)), "")


def _told_apart(grades: ClassGrades, table: Table) -> list[Student]:
    """All students except those whom a platform may confuse with others; a note lists these."""
    confused = sorted(set().union(*groups_alike(grades.students)))
    if confused:
        table.say(
            f"left out, because their names are easily confused: {', '.join(map(shown, confused))}"
        )
    return [student for student in grades.students.values() if student.id not in confused]


def _rows_of(table: Table, ids: Sequence[int], grades: ClassGrades, by_mail=False) -> dict:
    """{our student: their row}, by any of the columns `ids`, and each row one student's.

    A student who matches two rows, or a row that somebody else matches as well, gets none of them,
    and a note says so: a grade in the wrong row is worse than a missing one.
    """
    ours: dict[str, set[str]] = defaultdict(set)  # names of a student: students
    for student in grades.students.values():
        for name in {student.id, student.number, student.email if by_mail else ""} - {""}:
            ours[alike(name)].add(student.id)
    claims = []
    for row in table.rows:
        names = {alike(PARTICIPANT.sub("", row[i].strip())) for i in ids} - {""}
        claims += [(student, row) for student in set().union(*(ours[n] for n in names & {*ours}))]
    rows_of, students_of = Counter(s for s, _ in claims), Counter(id(row) for _, row in claims)
    clear = {s: row for s, row in claims if rows_of[s] == 1 == students_of[id(row)]}
    for note in _unclear(table, [(s, row) for s, row in claims if s not in clear]):
        table.say(note)
    return clear


def _unclear(table: Table, claims: list[tuple[str, list[str]]]) -> Iterator[str]:
    """A sentence for each row that two students match, and each student who matches two rows."""
    number = {id(row): n for n, row in enumerate(table.rows, start=2)}
    students_of: dict[int, list[str]] = defaultdict(list)
    rows_of: dict[str, list[str]] = defaultdict(list)
    for student, row in claims:
        students_of[id(row)].append(student)
        rows_of[student].append(f"{number[id(row)]} ({one_line(row[0].strip(), 100)})")
    for row, students in students_of.items():
        if len(students) > 1:
            yield (
                f"left out: row {number[row]} of the table matches two students, "
                f"{' and '.join(map(shown, sorted(students)))}; if they are one person, remove one "
                f"of them with `{REMOVE}`"
            )
    for student, rows in sorted(rows_of.items()):
        if len(rows) > 1:
            yield (
                f"left out: {shown(student)} matches two rows of the table, "
                f"{' and '.join(rows)}; correct the one that is wrong, or enter their points there "
                "by hand"
            )


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
    ids = [i for i in map(worksheet.column, WORKSHEET_IDS) if i is not None]
    if at is None or not ids:
        raise UserError(
            "this is not a grading worksheet from Moodle: it needs the columns Identifier and "
            "Grade; in the assignment, with Moodle in English, choose Download grading worksheet"
        )
    if comment is None:
        worksheet.say("there is no column “Feedback comments”, so no feedback was written")
    found = _rows_of(worksheet, ids, grades, by_mail=True)
    (lesson,) = grades.lessons
    can = worksheet.column(CHANGEABLE)
    fixed = {s for s, row in found.items() if can is not None and _is_no(row[can])}
    for student, row in found.items():
        grade = grades.of(student, lesson)
        if (points := _points(grade)) and student not in fixed:
            row[at] = points
            if comment is not None:
                row[comment] = grade.sentence()
    if fixed:
        worksheet.say(
            f"{lesson}: Moodle says that these grades cannot be changed, so they are left as they "
            f"are: {_listed(fixed)}"
        )
    maximum, possible = worksheet.column("Maximum Grade"), _possible(grades, lesson)
    stands = {n for r in worksheet.rows if maximum is not None and (n := _number(r[maximum]))}
    for other in stands - {possible}:
        worksheet.say(_other_maximum(lesson, other, possible))
    _say_who_is_not_in_both(worksheet, found, grades, lambda row: _full_name(worksheet, row))
    return worksheet


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
        row = [student.id, student.email, student.name]
        for lesson in grades.lessons:
            grade = grades.of(student.id, lesson)
            points = _points(grade)
            row += [points, grade.sentence() if points else ""]
        rows.append(row)
    return table


def write_moodle_feedback(out: Path, feedback: Path, lesson: str, students) -> list[str]:
    """Put the feedback pages of a lesson into the archive that Moodle takes back.

    Folders are named ``NAME_PARTICIPANT_assignfeedback_file``, by which Moodle finds the person.
    Returns the students whose participant's number is unknown, and who are therefore left out.
    """
    named = [s for s in students if why_no_id(s.id) is None]
    pages = {s.id: feedback / s.id / lesson / f"{lesson}.html" for s in named}
    if not any(page.is_file() for page in pages.values()):
        raise UserError(
            f"there is no feedback on {lesson} in {feedback}: run `nbgrader generate_feedback "
            f"{lesson}` first"
        )
    with write_errors_explained(out), zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for student in named:
            number = _number_of(student)
            if number and pages[student.id].is_file():
                name = NAME_IN_ZIP.sub(" ", student.name).strip() or "student"
                folder = f"{name}_{number}_assignfeedback_file"
                archive.write(pages[student.id], f"{folder}/{lesson}.html")
    return [s.id for s in named if pages[s.id].is_file() and not _number_of(s)]
