"""A submission's time is what lies next to it now, whatever was there before."""

import classroom as room
import pytest
from nbgrader.api import Gradebook

from rlcourse.grading.books.gradebook import Course, Grades, load_source
from rlcourse.grading.books.grades import read_grades

LESSON = room.LESSON
DUE, LATE = "2026-10-01 21:59:00 UTC", "2026-10-01 22:30:00 UTC"


@pytest.fixture
def strict(course):
    """A course in which who is late gets nothing."""
    config = course / "nbgrader_config.py"
    config.write_text(config.read_text() + "\nc.LateSubmissionPlugin.penalty_method = 'zero'\n")
    opened = Course.open(course)
    with Grades(opened, LESSON, load_source(opened, LESSON)) as grades:
        grades.gradebook.update_or_create_assignment(LESSON, duedate=DUE)
    return course


def found(course) -> tuple[bool, str, float]:
    """Of the only student: late, the time handed in, and points."""
    one = read_grades(course).of("ada", LESSON)
    return one.late, one.handed_in, one.points


def test_grades_without_a_time_clear_the_one_of_an_earlier_submission(strict):
    opened, notebook = Course.open(strict), room.released(strict)
    with Grades(opened, LESSON, load_source(opened, LESSON)) as grades:
        grades.write("ada", notebook, {}, False, LATE)
        assert found(strict)[:2] == (True, "2026-10-01 22:30:00")
        grades.write("ada", notebook, {}, False, None)
        assert found(strict)[:2] == (False, "")


def test_a_time_alone_reaches_the_gradebook_and_the_penalty(strict):
    opened, notebook = Course.open(strict), room.released(strict)
    with Grades(opened, LESSON, load_source(opened, LESSON)) as grades:
        grades.write("ada", notebook, {}, False, None)
        question = grades.gradebook.find_grade("applause", LESSON, LESSON, "ada")
        question.manual_score, question.needs_manual_grade = 1.0, False
        grades.gradebook.db.commit()
        for time, expected in ((LATE, 0.0), (None, 1.0), (DUE, 1.0)):
            grades.keep_time("ada", time)
            with Gradebook(opened.directory.db_url) as book:  # before anything else looks
                submission = book.find_submission(LESSON, "ada")
                assert submission.score - (submission.late_submission_penalty or 0) == expected
            assert found(strict)[::2] == (time == LATE, expected)
        grades.keep_time("nobody", LATE)
    assert "nobody" not in read_grades(strict).students
