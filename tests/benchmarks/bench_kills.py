"""kill -9 at random moments of a batch of 30: whether a grade is lost or doubled.

    python tests/benchmarks/bench_kills.py              # 50 moments
    python tests/benchmarks/bench_kills.py --kills 5 --seed 1

Every grader is killed at a moment of its own: while it starts, in the middle of a submission, while
it writes. After each kill the gradebook must be whole and nothing that was done may be done again;
when a batch is complete, every grade must be there once and be the right one. Prints a line per
batch and exits with 1 at the first that is not.
"""

import argparse
import multiprocessing
import os
import random
import shutil
import signal
import sqlite3
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "grading"))
os.environ.setdefault("OMP_NUM_THREADS", "1")

import classroom as room

from rlcourse.files import TEMPORARY
from rlcourse.grading import grade

STUDENTS = 30


def finished(course: Path) -> dict[str, int]:
    """Autograded notebooks and when they were written."""
    files = (course / "autograded").glob("*/*/*.ipynb")
    return {path.parts[-3]: path.stat().st_mtime_ns for path in files}


def kill_one(course: Path, rng: random.Random) -> str:
    """Start a grader and kill it; what it was doing, roughly."""
    before = len(finished(course))
    grader = multiprocessing.get_context("fork").Process(
        target=grade, args=("02",), kwargs={"course": course}
    )
    grader.start()
    if rng.random() < 0.3:
        when, more, delay = "starting", 0, rng.uniform(0, 3)
    else:
        when, more, delay = "at work", rng.randint(1, 4), rng.uniform(0, 0.2)
    while grader.is_alive() and len(finished(course)) < before + more:
        time.sleep(0.002)
    time.sleep(delay)
    if not grader.is_alive():
        return "done before"
    os.kill(grader.pid, signal.SIGKILL)
    grader.join()
    return when


def verify(course: Path, written: dict[str, int]) -> dict[str, int]:
    """What is finished now. ``AssertionError`` if that was touched, or the gradebook is broken."""
    now = finished(course)
    assert {s: now.get(s) for s in written} == written, "something done was done again"
    if (course / "gradebook.db").exists():
        with sqlite3.connect(course / "gradebook.db") as database:
            assert database.execute("pragma integrity_check").fetchall() == [("ok",)]
    return now


def verify_complete(course: Path, written: dict[str, int]) -> None:
    report = grade("02", course=course)
    verify(course, written)
    assert {row.student for row in report.rows if row.before} == set(written)
    rows = room.query(course, room.GRADES)
    assert set(Counter((student, cell) for student, cell, *_ in rows).values()) == {1}
    assert len({student for student, *_ in rows}) == len(report.rows) == STUDENTS
    for number, row in enumerate(report.rows):
        earned = sum(room.POINTS[name] for name in room.NAMES[: number % 6])
        in_gradebook = sum(score or 0 for score in room.grades(course, row.student).values())
        assert (row.score, in_gradebook) == (earned, earned), row
    assert not list(course.rglob(f"{TEMPORARY}*")), "half-written files are left"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    rng, moments, batches = random.Random(args.seed), Counter(), 0
    with tempfile.TemporaryDirectory(prefix="bench-kills-") as directory:
        template = room.make_course(Path(directory, "template"))
        for number in range(STUDENTS):
            solved = room.solved(template, room.NAMES[: number % 6])
            room.submit(template, f"s{number:02}", solved)
        while moments.total() - moments["done before"] < args.kills:
            batches += 1
            course = Path(directory, f"batch{batches}", "course")
            shutil.copytree(template.parent, course.parent)
            written: dict[str, int] = {}
            while len(written) < STUDENTS and moments.total() < 2 * args.kills:
                moments[kill_one(course, rng)] += 1
                written = verify(course, written)
                if moments.total() - moments["done before"] >= args.kills:
                    break
            verify_complete(course, written)
            print(f"batch {batches}: complete and right; so far {dict(moments)}", flush=True)
    killed = moments.total() - moments["done before"]
    print(f"{killed} kills in {batches} batches of {STUDENTS}: no grade lost, none doubled")


if __name__ == "__main__":
    main()
