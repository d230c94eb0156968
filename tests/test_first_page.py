"""The sample class of the instructor's guide goes as its first page says, and pages stay short."""

import os
import re
import shutil
import subprocess

import pytest
from nbgrader.api import Gradebook
from shared import GUIDE, PATHS, blocks, commands
from small_courses import write_course
from warm import warm_commands

from rlcourse.authoring.builder import build

LESSON = "02_policy_gradient"


@pytest.mark.parametrize("page", PATHS)
def test_a_page_that_is_followed_stays_short(page):
    assert len((GUIDE / f"{page}.md").read_text("utf-8").split()) <= 700


@pytest.fixture
def warm():
    with warm_commands() as path:
        yield path


@pytest.mark.slow
def test_the_sample_class_goes_as_the_page_says(tmp_path, warm):
    course = write_course(tmp_path / "course", {LESSON: None})
    build(root=tmp_path, progress=False)
    (tmp_path / "solutions").mkdir(exist_ok=True)
    shutil.copy(GUIDE.parent / "solutions" / f"{LESSON}.ipynb", tmp_path / "solutions")
    environment = os.environ | {"PATH": warm, "HOME": str(tmp_path), "OMP_NUM_THREADS": "1"}

    def run(line: str) -> str:
        words = ["bash", "-euc", line]
        done = subprocess.run(words, cwd=course, env=environment, capture_output=True, text=True)
        assert done.returncode == 0, f"{line}\n{done.stdout[-1000:]}\n{done.stderr[-3000:]}"
        return done.stdout

    before, said = {path.name for path in course.iterdir()}, {}
    *lines, removes = commands("README")
    for line in lines:
        if line == "jupyter lab":  # where a person gives all points by hand
            with Gradebook(f"sqlite:///{course}/gradebook.db") as book:
                for student in ("ada", "bob"):
                    grade = book.find_grade("applause", LESSON, LESSON, student)
                    assert grade.needs_manual_grade
                    grade.manual_score, grade.needs_manual_grade = 2.0, False
                book.db.commit()
        else:
            said[line] = run(line)
    (table,) = blocks("README", "text")
    assert said["rlcourse grade 02"].startswith(table)
    assert (course / "feedback" / "bob" / LESSON / f"{LESSON}.html").is_file()
    last = [row.rpartition(",")[2] for row in (course / "grades.csv").read_text().splitlines()]
    shown = "{} for Ada, {} for Bob, {} for Cleo".format(*last[2:])
    assert shown in (GUIDE / "README.md").read_text("utf-8"), shown
    report = (course / f"insight-{LESSON}.html").read_text("utf-8")
    assert not re.search(r"\bbob\b", report, re.I)
    run(removes)
    left = {path.name for path in course.iterdir()} - before
    assert left <= {".grading-secret", "source", "release", ".nbgrader.log", "__pycache__"}, left
