"""The due dates of ``course.toml``, entered in nbgrader's gradebook, which decides who is late."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

from nbgrader import utils
from nbgrader.api import Gradebook, MissingEntry
from nbgrader.coursedir import CourseDirectory

from rlcourse.courses import current
from rlcourse.grading.books.opening import is_absent, open_gradebook


def enter_due_dates(gradebook: Gradebook, course: Path) -> None:
    """Enter those of the course in the directory `course`, for the lessons that the gradebook has.

    A lesson without a date in ``course.toml`` keeps the one that it has in the gradebook.
    """
    for lesson, due in current(course).due.items():
        try:
            known = gradebook.find_assignment(lesson).duedate
        except MissingEntry:
            continue
        if known != utils.parse_utc(due):
            gradebook.update_or_create_assignment(lesson, duedate=due)


def due_date(directory: CourseDirectory, lesson: str) -> datetime | None:
    """When a lesson is due, in UTC without a zone: by ``course.toml``, else by the gradebook."""
    if stated := current(Path(directory.root)).due.get(lesson):
        return utils.parse_utc(stated)
    if is_absent(directory):
        return None
    try:
        with open_gradebook(directory) as gradebook:
            return gradebook.find_assignment(lesson).duedate
    except MissingEntry:
        return None


def just_late(due: datetime) -> str:
    """The first second after the due date `due`, which is in UTC, as nbgrader writes a time."""
    return written((due + timedelta(seconds=1)).replace(tzinfo=UTC))


def written(time: datetime) -> str:
    """A time in UTC as ``timestamp.txt`` holds it."""
    return f"{time:%Y-%m-%d %H:%M:%S} UTC"
