"""A grader that is killed at any moment loses nothing and grades nothing twice."""

import multiprocessing
import os
import random
import signal
import sqlite3
import time
from collections import Counter
from pathlib import Path

import classroom as room
import pytest

from rlcourse.files import TEMPORARY
from rlcourse.grading.engine import grade

pytestmark = pytest.mark.slow
# Each kill costs the start of a server.
STUDENTS_AND_KILLS = (9, 3), pytest.param(18, 6, marks=pytest.mark.weekly)


def finished(course: Path) -> dict[str, int]:
    """Autograded notebooks and when they were written."""
    files = (course / "autograded").glob("*/*/*.ipynb")
    return {path.parts[-3]: path.stat().st_mtime_ns for path in files}


@pytest.fixture
def servers():
    with room.servers_watched() as servers:
        yield servers


def grade_until_killed(course: Path, more: int, delay: float) -> None:
    """Grade in a process of its own; SIGKILL it `delay` after `more` submissions are done."""
    before = len(finished(course))
    process = multiprocessing.get_context("fork").Process(
        target=grade, args=("02",), kwargs={"course": course}
    )
    process.start()
    deadline = time.monotonic() + 900
    while process.is_alive() and len(finished(course)) < before + more:
        assert time.monotonic() < deadline
        time.sleep(0.002)
    time.sleep(delay)
    os.kill(process.pid, signal.SIGKILL)
    process.join()


@pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="needs fork")
@pytest.mark.parametrize("students, kills", STUDENTS_AND_KILLS)
def test_a_batch_killed_again_and_again_is_graded_exactly_once(course, servers, students, kills):
    for number in range(students):
        solved = room.NAMES[: number % 6]
        room.submit(course, f"s{number:02}", room.solved(course, solved))
    rng, written = random.Random(time.time_ns()), {}
    for _ in range(kills):
        grade_until_killed(course, more=rng.randint(0, 2), delay=rng.uniform(0, 0.15))
        now = finished(course)
        assert {s: now[s] for s in written} == written  # nothing done is done again
        written = now
        if (course / "gradebook.db").exists():
            with sqlite3.connect(course / "gradebook.db") as database:
                assert database.execute("pragma integrity_check").fetchall() == [("ok",)]
    report = grade("02", course=course)
    after = finished(course)
    assert {s: after[s] for s in written} == written
    assert len(report.rows) == len(after) == students
    assert {row.student for row in report.rows if row.before} == set(written)
    rows = room.query(course, room.GRADES)
    assert set(Counter((student, cell) for student, cell, *_ in rows).values()) == {1}
    for number, row in enumerate(report.rows):
        earned = sum(room.POINTS[name] for name in room.NAMES[: number % 6])
        assert (row.student, row.score, row.status) == (f"s{number:02}", earned, "graded")
        assert sum(score or 0 for score in room.grades(course, row.student).values()) == earned
    assert not list(course.rglob(f"{TEMPORARY}*"))
    deadline = time.monotonic() + 300
    while servers() and time.monotonic() < deadline:
        time.sleep(0.1)
    assert servers() == set()
