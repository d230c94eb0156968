"""Plain nbgrader, run as an instructor runs it in ``course/``: release, autograde, feedback."""

import os
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
from fixture_course import LESSON, NAME, declare
from nbgrader.api import Gradebook
from small_courses import write_course

from rlcourse import exercises
from rlcourse.authoring.builder import build
from rlcourse.authoring.lesson import read_lesson
from rlcourse.authoring.notebooks import dumps, solved_notebook

pytestmark = pytest.mark.weekly

# A right value with a wrong gradient on some rows: the check gives part of the points.
HALF_RIGHT = """\
def reinforce_loss(logprobs, advantages, mask):
    return -(advantages.detach() * logprobs.masked_fill(~mask.bool(), 0).mean(dim=1)).mean()
"""


def cell(node, name):
    return next(cell for cell in node.cells if cell.id == name)


def submissions(student, solved):
    """What students hand in, by student."""
    half = nbformat.reads(solved, as_version=4)
    cell(half, "reinforce_loss").source = HALF_RIGHT
    cell(half, "score_function").source = "def score_function(logits, action"
    tampered = nbformat.reads(solved, as_version=4)
    cell(tampered, "score_function").source = "def score_function(logits, action): return None"
    cell(tampered, "check_score_function").metadata["tags"] = ["skip-execution"]
    tampered.cells.remove(cell(tampered, "check_reinforce_loss"))
    return {"perfect": solved, "blank": student, "half": dumps(half), "tampered": dumps(tampered)}


@pytest.fixture(scope="module")
def desk(tmp_path_factory):
    """The instructor's ``course/`` after release, autograde and feedback; nothing is written."""
    root = tmp_path_factory.mktemp("course")
    course = write_course(root / "course", {NAME: LESSON})
    registry = [declare("score_function"), declare("reinforce_loss")]
    build(root=root, registry=registry, progress=False)
    student = (root / "notebooks" / NAME / f"{NAME}.ipynb").read_text(encoding="utf-8")
    lesson = read_lesson(course / "lessons" / NAME / "lesson.md", registry)
    solved = dumps(solved_notebook(lesson, nbformat.reads(student, as_version=4)))
    for name, text in submissions(student, solved).items():
        path = course / "submitted" / name / NAME / f"{NAME}.ipynb"
        path.parent.mkdir(parents=True)
        path.write_text(text, encoding="utf-8")
    for command in ("generate_assignment", "autograde", "generate_feedback"):
        nbgrader(course, command)
    return course


def nbgrader(course, command):
    scripts = str(Path(sys.executable).parent)  # nbgrader looks for alembic on PATH
    environment = os.environ | {
        "PATH": f"{scripts}{os.pathsep}{os.environ['PATH']}",
        "RLCOURSE_HOME": str(course / "home"),
        "OMP_NUM_THREADS": "1",
    }
    done = subprocess.run(
        [sys.executable, "-m", "nbgrader", command, NAME],
        cwd=course,
        env=environment,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr


@pytest.fixture(scope="module")
def marks(desk):
    """{student: {grade id: automatic points}}"""
    with Gradebook(f"sqlite:///{desk}/gradebook.db") as gradebook:
        return {
            submission.student.id: {
                grade.name: grade.auto_score for grade in submission.notebooks[0].grades
            }
            for submission in gradebook.assignment_submissions(NAME)
        }


def test_release_of_plain_nbgrader_is_the_committed_student_notebook(desk):
    released = (desk / "release" / NAME / f"{NAME}.ipynb").read_text(encoding="utf-8")
    built = (desk.parent / "notebooks" / NAME / f"{NAME}.ipynb").read_text(encoding="utf-8")
    assert nbformat.reads(released, as_version=4) == nbformat.reads(built, as_version=4)


def test_plain_nbgrader_gives_the_points_that_checks_give(marks):
    score, loss = (exercises.get(name).points for name in ("score_function", "reinforce_loss"))
    perfect, half, tampered = (
        tuple(marks[name][f"check_{exercise}"] for exercise in ("score_function", "reinforce_loss"))
        for name in ("perfect", "half", "tampered")
    )
    assert perfect == (score, loss) and marks["perfect"]["why_sum"] is None  # a person reads it
    assert set(marks["blank"].values()) == {0}
    assert half[0] == 0, "a syntax error costs its own exercise"
    assert 0 < half[1] < loss
    assert tampered[0] == 0, "a tag that skips the check earns nothing"
    assert tampered[1] == loss, "a deleted check cell comes back and is run"


def test_feedback_says_what_is_wrong_and_a_demo_cell_was_not_run(desk):
    feedback = (desk / "feedback" / "half" / NAME / f"{NAME}.html").read_text(encoding="utf-8")
    assert "those of a mean over all N·T positions" in feedback
    graded = nbformat.read(desk / "autograded" / "perfect" / NAME / f"{NAME}.ipynb", as_version=4)
    demo = next(c for c in graded.cells if "demo ran" in c.source)
    assert demo.outputs == []
    assert not (desk / "home").exists(), "nobody's progress"
