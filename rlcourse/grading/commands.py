"""``rlcourse roster``, ``collect``, ``extend``, ``grade``, ``grades`` and others."""

import json
import sys
from pathlib import Path
from typing import Annotated
from zoneinfo import ZoneInfo

import typer

from rlcourse.errors import UserError
from rlcourse.installed import needing
from rlcourse.words import counted

COURSE = typer.Option("--course", help="Directory of the gradebook [default: the course's].")


def collect(
    lesson: Annotated[str, typer.Argument(help="Number or name of the lesson.")],
    files: Annotated[
        list[Path], typer.Argument(help="A platform's archives, or notebooks with the same names.")
    ],
    worksheet: Annotated[
        Path | None,
        typer.Option(
            help="This assignment's grading worksheet from Moodle, which says who is who and when "
            "they handed in."
        ),
    ] = None,
    zone: Annotated[
        str | None,
        typer.Option(help="Time zone of --worksheet, as Europe/Berlin [default: this machine's]."),
    ] = None,
    force: Annotated[
        bool, typer.Option("--force", help="Replace notebooks that are already there and differ.")
    ] = False,
    course: Annotated[Path | None, COURSE] = None,
) -> None:
    """Put what students handed in on Canvas or Moodle into submitted/."""
    with needing("grade", "collecting"):
        from rlcourse.grading.books.due import due_date
        from rlcourse.grading.books.gradebook import Course
        from rlcourse.grading.books.people import names_of, other_ids, students_of
        from rlcourse.grading.platforms.collecting import described, notebooks, take
        from rlcourse.grading.platforms.platform import Worksheet
        from rlcourse.grading.table import Table
    if missing := [str(path) for path in files if not path.is_file()]:
        raise UserError(f"there is no file {missing[0]}: name the archive that you downloaded")
    if zone is not None and worksheet is None:
        raise UserError("--zone is the time zone of a worksheet: add --worksheet FILE")
    opened = Course.of(course)
    name, submitted = opened.lesson(lesson), opened.step(opened.directory.submitted_directory)
    students, listed = students_of(opened.directory), bool(other_ids(opened.root))
    table = None if worksheet is None else Worksheet(Table.read(worksheet), _zone(zone))
    found = notebooks(files, name, students, table, listed)
    rows = list(take(found, name, submitted, due_date(opened.directory, name), force))
    print(described(rows, names_of(opened.directory)))
    if not any(row.path for row in rows):
        why = "the table says why" if rows else f"no file is a student's notebook of {name}"
        raise UserError(f"nothing was collected: {why}")


def _zone(name: str | None) -> ZoneInfo | None:
    if name is None:
        return None
    try:
        return ZoneInfo(name)
    except (LookupError, ValueError, OSError):
        raise UserError(
            f"--zone {name[:60]!a}: no such time zone; write one as Europe/Berlin"
        ) from None


def extend(
    student: Annotated[
        str, typer.Argument(help="The name of their directory, or any ID in the roster's table.")
    ],
    lesson: Annotated[str, typer.Argument(help="Number or name of the lesson.")],
    until: Annotated[
        str | None,
        typer.Option(help="Such as '2026-10-05 23:59 Europe/Berlin'; in UTC without a zone."),
    ] = None,
    remove: Annotated[
        bool, typer.Option("--remove", help="Take the extension back: the due date holds again.")
    ] = False,
    course: Annotated[Path | None, COURSE] = None,
) -> None:
    """Give a student more time for a lesson, or take it back."""
    from rlcourse.courses import current

    with needing("grade", "the gradebook"):
        from rlcourse.grading.books.extensions import described, student_of
        from rlcourse.grading.books.extensions import extend as give_time
        from rlcourse.grading.books.gradebook import Course

    if remove == (until is not None):
        raise UserError("say until when, with --until, or take it back, with --remove")
    opened = Course.of(course)
    name = current(opened.root).lesson(lesson).name  # which may not be built yet
    student = student_of(opened.directory, student)
    if time := give_time(opened.directory, name, student, until):
        print(f"{student} has until {described(time)} for {name}")
    else:
        print(f"taken back: {student} has no more time than the others for {name}")


def roster(
    table: Annotated[
        Path, typer.Argument(help="Canvas's exported gradebook, or Moodle's grading worksheet.")
    ],
    id: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN",
            help="What students are called here [default: Canvas's ID; the first of Moodle's ID "
            "number, Username and Email address].",
        ),
    ] = None,
    prefix: Annotated[
        str,
        typer.Option(
            help="What stands before --id here: jupyter- with The Littlest JupyterHub.",
            show_default=False,
        ),
    ] = "",
    course: Annotated[Path | None, COURSE] = None,
) -> None:
    """Enter the names of the class in the gradebook, from the platform's own table."""
    with needing("grade", "the gradebook"):
        from rlcourse.grading.books.gradebook import Course
        from rlcourse.grading.books.opening import open_gradebook
        from rlcourse.grading.platforms.roster import enter_roster
        from rlcourse.grading.table import Table
    if prefix and id is None:
        raise UserError(f"--prefix {prefix} goes before a column's text: add --id COLUMN")
    opened, read = Course.of(course), Table.read(table)
    with open_gradebook(opened.directory) as gradebook:
        entered = enter_roster(gradebook, opened.root, read, id or "", prefix)
    for note in read.notes:
        print(f"rlcourse: {note}", file=sys.stderr)
    such_as = f"such as {entered[0].id} ({entered[0].full_name})"
    print(f"in the gradebook by name: {counted(len(entered), 'student')}, {such_as}")


def grade(
    lesson: Annotated[str, typer.Argument(help="Number or name of the lesson.")],
    submitted: Annotated[
        Path | None, typer.Option(help="STUDENT/LESSON/LESSON.ipynb [default: the course's].")
    ] = None,
    student: Annotated[str | None, typer.Option(help="Grade only this student.")] = None,
    course: Annotated[Path | None, COURSE] = None,
    force: Annotated[
        bool, typer.Option("--force", help="Grade again what was graded before.")
    ] = False,
    strict: Annotated[
        bool, typer.Option("--strict", help="Refuse to grade if an isolation layer is missing.")
    ] = False,
    allow_weak_isolation: Annotated[
        bool,
        typer.Option(
            "--allow-weak-isolation",
            help="Grade even if student code can read your files or reach your processes.",
        ),
    ] = False,
    jobs: Annotated[
        int | None, typer.Option(min=1, help="Submissions at a time [default: one per core].")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="For machines.")] = False,
) -> None:
    """Grade a lesson's submissions into nbgrader's gradebook; student code runs isolated."""
    from tqdm import tqdm

    with needing("grade", "grading"):
        from rlcourse.grading.books.gradebook import Course
        from rlcourse.grading.books.people import names_of
        from rlcourse.grading.engine import Options
        from rlcourse.grading.engine import grade as grade_lesson

    # Not drawn before the first row, since an error may come first
    with tqdm(desc="grade", unit="submission", disable=as_json, leave=False, delay=1e-3) as bar:

        def advance(row, count):
            bar.total = count
            bar.initial += row.before  # the estimate is of what is graded now
            bar.update()

        report = grade_lesson(
            lesson,
            submitted,
            student,
            course=course,
            options=Options(
                force=force,
                strict=strict,
                allow_weak_isolation=allow_weak_isolation,
                jobs=jobs,
            ),
            on_row=None if as_json else advance,
            on_warning=lambda text: print(f"rlcourse: WARNING: {text}", file=sys.stderr),
        )
    if as_json:
        print(json.dumps(report.as_json(), indent=2))
    else:
        print(report.described(names_of(Course.of(course).directory)))


def grades(
    lessons: Annotated[
        list[str] | None, typer.Argument(metavar="[LESSON]...", help="By default all.")
    ] = None,
    into: Annotated[
        Path | None,
        typer.Option(help="Table to fill in: Canvas's exported gradebook or Moodle's worksheet."),
    ] = None,
    column: Annotated[
        list[str] | None,
        typer.Option(
            metavar="LESSON=NAME",
            help="Canvas's column for a lesson, where none or several fit its name.",
        ),
    ] = None,
    feedback: Annotated[
        Path | None, typer.Option(help="Also write this archive of feedback pages, for Moodle.")
    ] = None,
    out: Annotated[Path | None, typer.Option(help="The file [default: grades.csv].")] = None,
    course: Annotated[Path | None, COURSE] = None,
) -> None:
    """Write the grades as a table for yourself, or into the table of Canvas or Moodle.

    It includes points by hand and late penalties. If nothing was handed in, or points by hand are
    still to come, the field is empty.
    """
    with needing("grade", "exporting grades"):
        from rlcourse.grading.books.grades import read_grades
        from rlcourse.grading.platforms.exporting import Filling, plain_table
        from rlcourse.grading.table import Table
    from rlcourse.courses import current

    path = out or Path("grades.csv")
    if into is None and (column or feedback):
        raise UserError("--column and --feedback are for a platform's table: add --into TABLE")
    if into is not None and not lessons:
        raise UserError(
            "name the lessons whose points go into the table, as in `rlcourse grades 02`"
        )
    if into is not None and path.resolve() == into.resolve():
        raise UserError(f"{into} is what the platform exported: choose another --out")
    place = course or current().directory
    found = read_grades(place, lessons or ())
    if into is None:
        table = plain_table(found)
    else:
        table = Table.read(into)
        filling = Filling(table, found)
        filling.fill(_columns(column or [], found.lessons))
        if feedback is not None:
            filling.write_feedback(feedback, place / "feedback")
    table.write(path)
    for note in table.notes:
        print(f"rlcourse: {note}", file=sys.stderr)
    print(path)


def _columns(given: list[str], lessons: tuple[str, ...]) -> dict[str, str]:
    from rlcourse.courses.course import chosen

    found = {}
    for pair in given:
        wanted, equals, name = pair.partition("=")
        named = chosen(lessons, wanted)
        if not equals or not named:
            raise UserError(f"--column {pair}: write LESSON=NAME, as in 02='Policy gradient (9)'")
        found[named] = name
    return found
