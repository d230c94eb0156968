"""Two graders at once, a gradebook that another program writes to, and what a killed one leaves."""

import gc
import os
import sqlite3
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import classroom as room
import pytest

from rlcourse.errors import UserError
from rlcourse.grading import engine
from rlcourse.grading.books import gradebook
from rlcourse.grading.books.gradebook import Course, Grades, load_source
from rlcourse.grading.engine import grade
from rlcourse.grading.handing_in.student_folder import HandedIn
from rlcourse.grading.locking import only_one

fcntl = pytest.importorskip("fcntl")


def grades_of(course):
    opened = Course.open(course)
    return Grades(opened, room.LESSON, load_source(opened, room.LESSON))


def test_a_second_grader_of_the_same_lesson_is_refused_in_a_sentence(course):
    room.submit(course, "ada", room.released(course))
    with (
        only_one(course / "autograded" / f".{room.LESSON}.lock", 0, ""),
        pytest.raises(UserError, match="another grader is working on 02_policy_gradient"),
    ):
        grade("02", course=course)


def test_two_that_write_to_one_gradebook_lose_and_double_nothing(course):
    students = [f"s{number:02}" for number in range(12)]
    blank = room.released(course)

    def write_all(names):
        with grades_of(course) as grades:
            for name in names:
                grades.write(name, blank, {}, False, None)

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(write_all, [students, students[::-1]]))
    rows = Counter((student, cell) for student, cell, *_ in room.query(course, room.GRADES))
    assert set(rows.values()) == {1}
    assert {student for student, _ in rows} == set(students)


@pytest.mark.slow
def test_a_gradebook_that_stays_locked_is_one_sentence_and_no_grade_of_zero(course, monkeypatch):
    with grades_of(course):
        pass
    monkeypatch.setattr(gradebook, "BUSY_SECONDS", 0.2)
    grades = grades_of(course)
    other = sqlite3.connect(course / "gradebook.db", isolation_level=None)
    other.execute("begin exclusive")
    with pytest.raises(UserError, match="writing to the gradebook for a minute"):
        grades.write("ada", room.released(course), {}, False, None)
    with pytest.raises(UserError, match="run the same command again"):
        grades_of(course)
    other.execute("rollback")
    grades.gradebook.db.rollback()
    assert grades.write("ada", room.released(course), {}, False, None)[0] == 0.0
    grades.gradebook.close()


def test_a_fault_of_the_machine_is_no_fault_of_the_submission(course, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    room.submit(course, "ada", room.released(course))
    opened = Course.open(course)
    release = room.released(course)
    with grades_of(course) as grades:
        batch = engine._Batch(
            opened, room.LESSON, course / "submitted", release, grades, engine.Options()
        )
        ran = engine.Ran(HandedIn("ada"), engine.Read(release, {}, ()), 0.0)
        monkeypatch.setattr(engine.nbgrader_side, "write_receipt", full)
        with pytest.raises(UserError, match="grades of ada could not be written"):
            batch._record_safely(ran)


def test_a_lock_outlives_forks_of_its_holder_that_end(tmp_path):
    with only_one(tmp_path / "lock", 0, ""):
        reader = os.fork()
        if not reader:
            gc.collect()
            os._exit(0)
        os.waitpid(reader, 0)
        with pytest.raises(UserError, match="held"), only_one(tmp_path / "lock", 0.1, "held"):
            pass
    with only_one(tmp_path / "lock", 0, "free again"):
        pass
