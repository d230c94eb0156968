"""``rlcourse amend``: one writer at a time, as when grading."""

from pathlib import Path

from nbgrader.api import Gradebook

from rlcourse.grading.books.gradebook import BUSY, Course, load_source, put_alembic_on_path
from rlcourse.grading.books.released import amend
from rlcourse.grading.locking import only_one

WAIT = 60.0  # seconds, for a grader that writes to the same gradebook


def amend_lesson(course: Course, lesson: str, drop: bool) -> str:
    """Bring the gradebook's cells in step with the built lesson; what was done, "" for nothing."""
    source, autograded = load_source(course, lesson), course.directory.autograded_directory
    put_alembic_on_path()
    lock = Path(course.step(autograded), ".gradebook.lock")
    with (
        only_one(lock, WAIT, BUSY),
        Gradebook(course.directory.db_url, course.directory.course_id) as gradebook,
    ):
        return str(amend(gradebook, lesson, source, drop))
