"""A submission's time is what lies next to it now, whatever was there before."""

import json
import subprocess
import sys

import classroom as room
import pytest
from nbgrader.api import Gradebook

from rlcourse.grading import grade
from rlcourse.grading.books.gradebook import Course, Grades, load_source
from rlcourse.grading.books.grades import read_grades

LESSON = room.LESSON
EARLY = "2026-10-01 20:00:00 UTC"
DUE, LATE = "2026-10-01 21:59:00 UTC", "2026-10-01 22:30:00 UTC"
JUST_LATE = "2026-10-01 21:59:01 UTC"  # what Canvas calls late, without a time


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
        grades.write("ada", notebook, {}, False, JUST_LATE)
        assert found(strict)[:2] == (True, "")
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


@pytest.mark.slow
def test_the_submission_on_time_is_got_back_from_the_exchange_and_stays_until_collect(strict):
    """By the command that the hub's guide prints, with the due date of course.toml."""
    exchange = strict / "exchange"
    config = strict / "nbgrader_config.py"
    config.write_text(config.read_text() + f"\nc.Exchange.root = {str(exchange)!r}\n")
    (strict / "course.toml").open("a").write("\n[due]\n02_policy_gradient = 2026-10-01T21:59:00Z\n")
    for when, answered in ((EARLY, ["score_function"]), (LATE, room.NAMES)):
        inbound = exchange / "rlcourse" / "inbound" / f"ada+{LESSON}+{when}+some"
        inbound.mkdir(parents=True)
        (inbound / f"{LESSON}.ipynb").write_text(json.dumps(room.solved(strict, answered)))
        (inbound / "timestamp.txt").write_text(when)

    def collected(options: str) -> tuple[bool, str, float]:
        command = [sys.executable, "-m", "nbgrader", "collect", LESSON, *options.split()]
        subprocess.run(command, cwd=strict, check=True, capture_output=True)
        (row,) = grade("02", course=strict).rows
        # both say a time long before these files were written here, as a forger's do
        assert row.status == "doubtful time" and "doubtful time" in row.review, row
        assert (row.seconds_late > 0) == found(strict)[0]
        return found(strict)

    assert collected("") == (True, LATE.removesuffix(" UTC"), 0.0)
    on_time = collected("--before-duedate --student ada")
    assert on_time[:2] == (False, EARLY.removesuffix(" UTC")) and on_time[2] > 0
    assert collected("--update")[0], "as Formgrader's Collect does"
    folder = strict / "submitted" / "ada" / LESSON
    (folder / "timestamp.txt").write_text((folder / "arrived.txt").read_text())
    (row,) = grade("02", course=strict).rows
    assert row.status == "graded" and row.penalty > 0, "a person has decided"
