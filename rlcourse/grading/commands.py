"""``rlcourse grade``, ``grades``, ``complete`` and ``verify``."""

import json
import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from rlcourse.errors import UserError, needing

COURSE = typer.Option("--course", help="Directory of the gradebook [default: course/].")


class Format(StrEnum):
    """Who is to read the grades."""

    csv = "csv"
    canvas = "canvas"
    moodle = "moodle"


def grade(
    lesson: Annotated[str, typer.Argument(help="Number or name of the lesson.")],
    submitted: Annotated[
        Path | None, typer.Option(help="STUDENT/LESSON/LESSON.ipynb [default: the course's].")
    ] = None,
    student: Annotated[str | None, typer.Option(help="Grade this one only.")] = None,
    course: Annotated[
        Path | None, typer.Option(help="Directory of the gradebook [default: course/].")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Also what was graded before.")] = False,
    strict: Annotated[
        bool, typer.Option("--strict", help="Refuse where an isolation layer is missing.")
    ] = False,
    allow_weak_isolation: Annotated[
        bool,
        typer.Option(
            "--allow-weak-isolation",
            help="Grade also where student code can read your files or reach your processes.",
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
        from rlcourse.grading import Options
        from rlcourse.grading import grade as grade_lesson

    options = {"unit": "submission", "disable": as_json, "leave": False, "smoothing": 0}
    with tqdm(desc="grade", **options) as bar:

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
    print(json.dumps(report.as_json(), indent=2) if as_json else report)


def grades(
    lessons: Annotated[
        list[str] | None, typer.Argument(metavar="[LESSON]...", help="By default all.")
    ] = None,
    format: Annotated[
        Format, typer.Option(help="Whose table: csv is a plain one, a row a student and lesson.")
    ] = Format.csv,
    into: Annotated[
        Path | None,
        typer.Option(help="Fill in this one: Canvas's exported gradebook, Moodle's worksheet."),
    ] = None,
    column: Annotated[
        list[str] | None,
        typer.Option(metavar="LESSON=NAME", help="Canvas's column for a lesson, where unclear."),
    ] = None,
    feedback: Annotated[
        Path | None, typer.Option(help="Also write this archive of feedback pages, for Moodle.")
    ] = None,
    out: Annotated[Path | None, typer.Option(help="The file [default: grades.csv].")] = None,
    course: Annotated[Path | None, COURSE] = None,
) -> None:
    """Write the grades as a table for Canvas, for Moodle, or for yourself.

    Points by hand and late penalties are in it. Who handed in nothing gets an empty field.
    """
    with needing("grade", "exporting grades"):
        from rlcourse.grading.platforms import (
            Table,
            canvas_table,
            moodle_table,
            plain_table,
            write_moodle_feedback,
        )
    place, found = _read(course, lessons)
    exported = None
    if into is not None:
        if format is Format.csv:
            raise UserError("--into fills in a platform's table: add --format canvas or moodle")
        exported = Table.read(into)
    if format is Format.canvas:
        table = canvas_table(found, exported, _columns(column or [], found.lessons))
    elif format is Format.moodle:
        table = moodle_table(found, exported)
    else:
        table = plain_table(found)
    path = out or Path("grades.csv")
    if into is not None and path.resolve() == into.resolve():
        raise UserError(f"{into} is what the platform exported: choose another --out")
    if feedback is not None:
        if format is not Format.moodle or len(found.lessons) != 1:
            raise UserError("--feedback goes with --format moodle and one lesson")
        left_out = write_moodle_feedback(
            feedback, place / "feedback", found.lessons[0], found.students.values()
        )
        if left_out:
            table.notes.append(f"no participant's number, so no feedback: {', '.join(left_out)}")
    table.write(path)
    for note in table.notes:
        print(f"rlcourse: {note}", file=sys.stderr)
    print(path)


def complete(
    student: Annotated[str, typer.Argument(help="Their name in the gradebook.")],
    out: Annotated[
        Path | None, typer.Option(help="The file [default: STUDENT.completion.json].")
    ] = None,
    share: Annotated[
        float, typer.Option("--passes-at", min=0.01, max=1, help="Share of points that passes.")
    ] = 0.5,
    course: Annotated[Path | None, COURSE] = None,
) -> None:
    """Sign what a student has passed, by the gradebook; for the instructor, who has the key."""
    with needing("grade", "signing"):
        from rlcourse.grading.completion import completion, private_key, write_completion
    place, found = _read(course, None)
    path = out or Path(f"{student}.completion.json")
    write_completion(path, completion(found, student, share), private_key(place))
    print(path)


def verify(
    file: Annotated[Path, typer.Argument(help="A completion file.")],
    key: Annotated[
        Path, typer.Option(help="The instructor's public key, from the instructor.")
    ] = Path("completion-key.pub"),
) -> None:
    """Check a completion file: that it is as the instructor signed it."""
    with needing("grade", "verifying"):
        from rlcourse.grading.completion import described, verified
    print(described(verified(file, key)))


def _read(course: Path | None, lessons: list[str] | None):
    with needing("grade", "the gradebook"):
        from rlcourse.authoring import find_root
        from rlcourse.grading.grades import read_grades

        place = course or find_root() / "course"
        return place, read_grades(place, lessons or ())


def _columns(given: list[str], lessons: tuple[str, ...]) -> dict[str, str]:
    found = {}
    for pair in given:
        wanted, equals, name = pair.partition("=")
        named = [lesson for lesson in lessons if wanted in (lesson, *lesson.split("_", 1))]
        if not equals or not named:
            raise UserError(f"--column {pair}: write LESSON=NAME, as in 02='Policy gradient (9)'")
        found[named[0]] = name
    return found
