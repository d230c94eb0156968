"""More time for a student: kept beside the gradebook, because nbgrader has it per submission.

``extensions.json`` says {lesson: {student: until}}, in UTC. It is entered as nbgrader's own
extension as soon as there is a submission, so Formgrader and late penalties know of it.
"""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

from nbgrader import utils
from nbgrader.api import Gradebook, MissingEntry
from nbgrader.coursedir import CourseDirectory

from rlcourse.errors import UserError
from rlcourse.files import write_json
from rlcourse.grading.books.due import due_date, written
from rlcourse.grading.books.people import students_by_name, students_of
from rlcourse.grading.handing_in.student_folder import utc
from rlcourse.grading.names import alike, one_line, shown, why_no_id
from rlcourse.moments import moment

FILE = "extensions.json"


def extend(
    directory: CourseDirectory, lesson: str, student: str, until: str | None
) -> datetime | None:
    """Give `student` time until then, in place of what was given before, or take it back if `until`
    is None; the time, in its zone.

    Raises:
        UserError: that is no time, the lesson has no due date, or one that is not earlier.
    """
    due = due_date(directory, lesson)
    if due is None:
        raise UserError(f"{lesson} has no due date to extend: give it one in course.toml, [due]")
    try:
        time = due if until is None else utils.parse_utc(utc(until))
    except (ValueError, OverflowError, LookupError):
        raise UserError(
            f"--until {one_line(str(until), 60)}: write a time as 2026-10-05 23:59 Europe/Berlin; "
            "without a zone it is in UTC"
        ) from None
    if until and time <= due:
        raise UserError(f"{written(time)} is not after the due date, {written(due)}")
    given = known(Path(directory.root))
    given.setdefault(lesson, {})[student] = written(time)
    write_json(Path(directory.root) / FILE, given)
    return moment(until) if until else None


def described(time: datetime) -> str:
    """A time for people: in its own zone, and in UTC, which the due date is shown in."""
    in_utc = f"{time.astimezone(UTC):%Y-%m-%d %H:%M} UTC"
    return f"{time:%A, %Y-%m-%d %H:%M} {time.tzinfo} ({in_utc})"


def student_of(directory: CourseDirectory, text: str) -> str:
    """Who is meant: the name of a directory, or any of a student's ids on the platform.

    Raises:
        UserError: nobody, in a class that is known, or what is no name.
    """
    students = students_of(directory)
    ours = students_by_name(students).get(alike(text), set())
    if text in ours or len(ours) == 1:
        return text if text in ours else ours.pop()
    reason = why_no_id(text)
    folder = Path(directory.format_path(directory.submitted_directory, text, "."))
    if reason is None and (not students or folder.is_dir()):
        return text
    raise UserError(
        f"there is no student {shown(text)} in the gradebook or in submitted/: "
        f"{reason or 'the gradebook has the names of all'}"
    )


def known(course: Path) -> dict[str, dict[str, str]]:
    """{lesson: {student: until}} of the course in that directory.

    Raises:
        UserError: the file cannot be read.
    """
    path = course / FILE
    try:
        found = json.loads(path.read_text("utf-8"))
        return {
            lesson: {student: written(utils.parse_utc(until)) for student, until in of.items()}
            for lesson, of in found.items()
        }
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, AttributeError, TypeError) as error:
        raise UserError(
            f"{path} cannot be read ({type(error).__name__}): fix it, or remove it and extend again"
        ) from None


def enter_extensions(gradebook: Gradebook, course: Path) -> None:
    """Give every submission that the gradebook has the extension of its student."""
    for lesson, students in known(course).items():
        for student, until in students.items():
            enter(gradebook, lesson, student, until)


def enter(gradebook: Gradebook, lesson: str, student: str, until: str) -> None:
    """Enter one, if the student has handed in; one that ends at the due date removes it."""
    try:
        submission = gradebook.find_submission(lesson, student)
    except MissingEntry:
        return
    due = submission.assignment.duedate
    if due is None:
        return
    more = max(utils.parse_utc(until) - due, timedelta())
    if more != (submission.extension or timedelta()):
        gradebook.grant_extension(lesson, student, minutes=more.total_seconds() / 60)
