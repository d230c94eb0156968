"""Grades as learning platforms take them: Canvas's gradebook, Moodle's worksheet, a plain table.

Best is to fill in a file that the platform exported, since that one has its columns, its names and
its numbers of people. Rows and columns that are not ours stay as they are. A student who handed in
nothing gets an empty field, never a 0: that is for a person to decide.
"""

import csv
import io
import re
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from rlcourse.errors import UserError
from rlcourse.files import write_errors_explained, write_text
from rlcourse.grading.grades import ClassGrades, LessonGrade, Student

CANVAS = ("Student", "ID", "SIS User ID", "SIS Login ID", "Section")
POINTS_POSSIBLE = "points possible"  # what Canvas's second row says below "Student"
WORKSHEET = ("Identifier", "Grade", "Feedback comments")
WORKSHEET_IDS = ("Identifier", "ID number", "Username", "Email address")
NAME_IN_ZIP = re.compile(r"[^\w .-]|_")


@dataclass
class Table:
    """A CSV file: its header, its rows, how it was written, and what has to be said about it."""

    header: list[str]
    rows: list[list[str]]
    delimiter: str = ","
    encoding: str = "utf-8"
    notes: list[str] = field(default_factory=list)

    @classmethod
    def read(cls, path: Path) -> "Table":
        """The table in a file that a platform wrote, with commas, semicolons or tabs."""
        try:
            content = path.read_bytes()
            text = content.decode("utf-8-sig")
        except (OSError, UnicodeDecodeError) as error:
            raise UserError(f"{path} cannot be read as a UTF-8 table: {error}") from None
        first = text.partition("\n")[0]
        delimiter = max(",;\t", key=first.count)
        lines = list(csv.reader(io.StringIO(text, newline=""), delimiter=delimiter))
        if len(lines) < 2:
            raise UserError(f"{path} has no students: export it again, as CSV")
        width = len(lines[0])
        rows = [row + [""] * (width - len(row)) for row in lines[1:]]
        bom = content.startswith(b"\xef\xbb\xbf")
        return cls(lines[0], rows, delimiter, "utf-8-sig" if bom else "utf-8")

    def column(self, name: str) -> int | None:
        """Where the column of that name stands; capitals and spaces around it do not count."""
        names = [header.strip().casefold() for header in self.header]
        return names.index(name.casefold()) if name.casefold() in names else None

    def text(self) -> str:
        """The file's text, quoted where a field needs it."""
        out = io.StringIO(newline="")
        writer = csv.writer(out, delimiter=self.delimiter, lineterminator="\n")
        writer.writerows([self.header, *self.rows])
        return out.getvalue()

    def write(self, path: Path) -> None:
        """Write it, whole or not at all."""
        with write_errors_explained(path):
            path.parent.mkdir(parents=True, exist_ok=True)
        mark = "\ufeff" if self.encoding == "utf-8-sig" else ""
        write_text(path, mark + self.text())


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
    """Points as all platforms read them; nothing where nothing was handed in."""
    return "" if grade.missing else f"{round(grade.points, 4):g}"


# Canvas


def canvas_table(grades: ClassGrades, exported: Table | None = None, columns=None) -> Table:
    """Canvas's gradebook with our points, in `exported` where it was exported from there.

    `columns` is {lesson: header} where a lesson's column cannot be told from its name.
    """
    table = exported or _canvas_from(grades)
    ids = [i for i in map(table.column, CANVAS[1:4]) if i is not None]
    if not ids or table.column("Student") is None:
        raise UserError(
            "this is no gradebook of Canvas's: it needs the columns Student, ID, SIS Login ID; "
            "export it in Canvas under Grades, Export"
        )
    found = _rows_of(table, ids, grades.students)
    for lesson in grades.lessons:
        at = _column_of(table, lesson, (columns or {}).get(lesson))
        possible = next((grades.of(s, lesson).possible for s in grades.students), None)
        _say_other_maximum(table, at, lesson, possible)
        for student, row in found.items():
            if points := _points(grades.of(student, lesson)):
                row[at] = points
    _say_who_is_not_in_both(table, found, grades, lambda row: _name_in_canvas(table, row))
    return table


def _canvas_from(grades: ClassGrades) -> Table:
    rows = []
    for s in grades.students.values():
        name = ", ".join(filter(None, [s.last_name, s.first_name])) or s.id
        rows.append([name, *((s.id, "", "") if s.id.isdigit() else ("", "", s.id)), ""])
    return Table(list(CANVAS), [["    Points Possible", "", "", "", ""], *rows])


def _rows_of(table: Table, ids: Sequence[int], students) -> dict[str, list[str]]:
    """{our student: their row}, by any of the columns `ids`."""
    found: dict[str, list[str]] = {}
    for row in table.rows:
        for name in {row[i].strip().casefold() for i in ids} - {""}:
            for student in students:
                if student.casefold() != name:
                    continue
                if found.setdefault(student, row) is not row:
                    raise UserError(f"two rows of the table are {student}: delete one of them")
    return found


def _column_of(table: Table, lesson: str, wanted: str | None) -> int:
    """A lesson's column; where there is none it is added, and Canvas makes an assignment of it."""
    if wanted is not None:
        at = table.column(wanted)
        if at is None:
            raise UserError(f"the table has no column {wanted!r}: name one of {table.header[5:]}")
        return at
    names = {_letters(lesson), _letters(lesson.partition("_")[2])}
    # Canvas writes the assignment's number behind its name: "Policy gradient (98765)"
    plain = [_letters(re.sub(r"\(\d+\)\s*$", "", header)) for header in table.header]
    matching = [i for i, name in enumerate(plain) if name in names]
    if len(matching) > 1:
        which = ", ".join(repr(table.header[i]) for i in matching)
        raise UserError(f"{lesson} may be {which}: say which with --column {lesson[:2]}=NAME")
    if matching:
        return matching[0]
    table.header.append(lesson)
    for row in table.rows:
        row.append("")
    table.notes.append(f"{lesson}: no such column, so one is added, an assignment of its own")
    return len(table.header) - 1


def _letters(text: str) -> str:
    return re.sub(r"[\W_]", "", text).casefold()


def _say_other_maximum(table: Table, at: int, lesson: str, possible: float | None) -> None:
    """Fill in the points that are possible; where others stand there, say so and leave them."""
    who = table.column("Student")
    for row in table.rows:
        if possible is None or row[who or 0].strip().casefold() != POINTS_POSSIBLE:
            continue
        stands = _number(row[at])
        if stands is None:
            row[at] = f"{possible:g}"
        elif stands != possible:
            table.notes.append(_other_maximum(lesson, stands, possible))


def _number(text: str) -> float | None:
    try:
        return float(text.strip().replace(",", "."))
    except ValueError:
        return None


def _other_maximum(lesson: str, stands: float, possible: float) -> str:
    return (
        f"{lesson}: {stands:g} points are possible there, and {possible:g} here; nothing is "
        "scaled, so change it there"
    )


def _name_in_canvas(table: Table, row: list[str]) -> str:
    name = row[table.column("Student") or 0].strip()
    others = (POINTS_POSSIBLE, "manual posting", "student, test", "test student")
    known = any(row[i].strip() for i in map(table.column, CANVAS[1:4]) if i is not None)
    return "" if name.casefold() in others or not known else name


def _say_who_is_not_in_both(table: Table, found, grades: ClassGrades, name_of) -> None:
    taken = {id(row) for row in found.values()}
    there = [name for row in table.rows if id(row) not in taken and (name := name_of(row))]
    here = [student for student in grades.students if student not in found]
    if there:
        table.notes.append(f"in the table, and not in the gradebook: {'; '.join(there)}")
    if here:
        table.notes.append(f"in the gradebook, and not in the table: {', '.join(here)}")
    table.notes += grades.notes()


# Moodle


def moodle_table(grades: ClassGrades, worksheet: Table | None = None) -> Table:
    """One lesson's grading worksheet with Grade and Feedback comments filled in.

    Without a worksheet, a table for Moodle's own import of grades, which asks what each column is.
    """
    if worksheet is None:
        return _moodle_import(grades)
    if len(grades.lessons) != 1:
        raise UserError("a worksheet of Moodle's is of one assignment: name one lesson")
    at, comment = (worksheet.column(name) for name in WORKSHEET[1:])
    ids = [i for i in map(worksheet.column, WORKSHEET_IDS) if i is not None]
    if at is None or not ids:
        raise UserError(
            "this is no grading worksheet of Moodle's: it needs the columns Identifier and Grade; "
            "download it in English from the assignment, Download grading worksheet"
        )
    if comment is None:
        worksheet.notes.append("no column Feedback comments, so no feedback was written")
    found = {}
    for row in worksheet.rows:
        for student in grades.students.values():
            if _is_of(row, worksheet, student):
                found[student.id] = row
    (lesson,) = grades.lessons
    for student, row in found.items():
        grade = grades.of(student, lesson)
        if not grade.missing:
            row[at] = _points(grade)
            if comment is not None:
                row[comment] = grade.sentence()
    maximum, possible = worksheet.column("Maximum Grade"), _possible(grades, lesson)
    stands = {n for r in worksheet.rows if maximum is not None and (n := _number(r[maximum]))}
    for other in stands - {possible}:
        worksheet.notes.append(_other_maximum(lesson, other, possible))
    _say_who_is_not_in_both(worksheet, found, grades, lambda row: _full_name(worksheet, row))
    return worksheet


def _possible(grades: ClassGrades, lesson: str) -> float:
    return next((grades.of(s, lesson).possible for s in grades.students), 0.0)


def _is_of(row: list[str], table: Table, student: Student) -> bool:
    """By Moodle's participant number, ID number, user name or e-mail address."""
    names = {student.id.casefold(), student.email.casefold()} - {""}
    values = {row[i].strip() for i in map(table.column, WORKSHEET_IDS) if i is not None} - {""}
    return any(re.sub(r"^Participant ", "", v).casefold() in names for v in values)


def _full_name(table: Table, row: list[str]) -> str:
    at = table.column("Full name")
    return row[at].strip() if at is not None else row[0]


def _moodle_import(grades: ClassGrades) -> Table:
    header = ["ID number", "Email address", "Full name"]
    for lesson in grades.lessons:
        header += [lesson, f"{lesson} (feedback)"]
    rows = []
    for student in grades.students.values():
        row = [student.id, student.email, student.name]
        for lesson in grades.lessons:
            grade = grades.of(student.id, lesson)
            row += [_points(grade), "" if grade.missing else grade.sentence()]
        rows.append(row)
    return Table(header, rows, notes=grades.notes())


def write_moodle_feedback(out: Path, feedback: Path, lesson: str, students) -> list[str]:
    """Put the feedback pages of a lesson into the archive that Moodle takes back.

    Folders are named ``NAME_PARTICIPANT_assignfeedback_file``: so Moodle finds the person.
    Returns the students whose id is no participant's number, and who are therefore left out.
    """
    pages = {s.id: feedback / s.id / lesson / f"{lesson}.html" for s in students}
    if not any(page.is_file() for page in pages.values()):
        raise UserError(
            f"there is no feedback on {lesson} in {feedback}: run `nbgrader generate_feedback "
            f"{lesson}` first"
        )
    with write_errors_explained(out), zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for student in students:
            if student.id.isdigit() and pages[student.id].is_file():
                name = NAME_IN_ZIP.sub(" ", student.name).strip() or "student"
                folder = f"{name}_{student.id}_assignfeedback_file"
                archive.write(pages[student.id], f"{folder}/{lesson}.html")
    return [s.id for s in students if pages[s.id].is_file() and not s.id.isdigit()]
