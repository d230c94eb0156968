"""A page that cannot be made harms no other: it is reported, and shows at least the points."""

import json
import logging
import resource
import shutil
import time

import classroom as room
import nbformat
import pytest
from nbformat.v4 import new_markdown_cell, new_output
from nbgrader.converters.base import NbGraderException
from shared import one_in
from stumbles import Stumbles
from traitlets.config import Config

from rlcourse.grading.books.gradebook import Course, Grades, load_source
from rlcourse.grading.confinement.disposable import Bounds
from rlcourse.grading.pages import showing
from rlcourse.grading.pages.showing import IsolatedExporter, IsolatedFeedback

# Not for any one test: what pages take is charged to the test that ends the process they share.
pytestmark = pytest.mark.slow
STUDENTS = ("ada", "bob", "cyd", "dot")
# A page of the class takes between one and two seconds where two of these tests run at a time.
BOUNDS = Bounds(cpu_seconds=8, seconds=300, memory=512 * 2**20)


@pytest.fixture(scope="module")
def known(template, tmp_path_factory):
    """A course whose gradebook knows the students."""
    root = tmp_path_factory.mktemp("known") / "repository"
    shutil.copytree(template.parent, root)
    course = Course.open(root / "course")
    with Grades(course, room.LESSON, load_source(course, room.LESSON)) as grades:
        for student in STUDENTS:
            grades.write(student, room.solved(course.root), {}, False, None)
    return course.root


@pytest.fixture
def graded(known, monkeypatch):
    """The same, in which nothing is autograded yet."""
    monkeypatch.setattr(showing, "BOUNDS", BOUNDS)
    yield known
    for made in ("autograded", "feedback"):
        shutil.rmtree(known / made, ignore_errors=True)


def autograded(course, student, notebook):
    path = course / "autograded" / student / room.LESSON / f"{room.LESSON}.ipynb"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(notebook if isinstance(notebook, str) else json.dumps(notebook))
    return path


def feedback_of(course, preprocessors=()) -> IsolatedFeedback:
    opened = Course.open(course)
    opened.directory.assignment_id, opened.directory.student_id = room.LESSON, "*"
    feedback = IsolatedFeedback(coursedir=opened.directory, config=Config(opened.config))
    feedback.preprocessors = [*preprocessors, *feedback.preprocessors]
    feedback.log.setLevel(logging.WARNING)
    return feedback


def page_of(course, student) -> str:
    return (course / "feedback" / student / room.LESSON / f"{room.LESSON}.html").read_text()


def has_page(course, student) -> bool:
    return (course / "feedback" / student).exists()


def test_whatever_one_page_does_the_others_are_made_and_it_says_its_points(graded, caplog):
    solved = room.solved(graded)
    for student, word in zip(STUDENTS, ("LOOP", "HOG", "CRASH", "fine"), strict=True):
        autograded(graded, student, room.with_markdown(solved, f"{word} {student}"))
    feedback = feedback_of(graded, [Stumbles])
    feedback.start()
    assert "fine dot" in page_of(graded, "dot"), caplog.text
    for student, why in (("ada", "too long"), ("bob", "MemoryError"), ("cyd", "status 9")):
        page = page_of(graded, student)
        assert "too large to be shown in full" in page and why in page, student
        assert "Score: " in page and "reinforce_loss" in page
        assert f"/{student}/" in caplog.text
    assert feedback.exporter._process is None  # ended with the batch


def test_what_is_no_notebook_is_an_error_that_names_it_after_all_others(graded, caplog):
    handed_in = "no notebook", "[" * 100_000, '{"cells": 7}', room.solved(graded)
    for student, notebook in zip(STUDENTS, handed_in, strict=True):
        autograded(graded, student, notebook)
    with pytest.raises(NbGraderException):
        feedback_of(graded).start()
    said = [student for student in STUDENTS if f"for student '{student}'" in caplog.text]
    assert said == ["ada", "bob", "cyd"] == [s for s in STUDENTS if not has_page(graded, s)]
    assert "Score: " in page_of(graded, "dot")


HOSTILE = {  # as plain nbgrader leaves them: none of it went through our reader
    "environments that begin": new_markdown_cell("\\begin{a}" * 20_000),
    "a huge output": nbformat.v4.new_code_cell(
        "1", outputs=[new_output("stream", text="<&" * 10_000_000)]
    ),
    "dots": nbformat.v4.new_code_cell("a." * 100_000),
}


@pytest.fixture(scope="module")
def exporter(template):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(showing, "BOUNDS", BOUNDS)
        exporter = IsolatedExporter(config=Course.open(template).config)
        yield exporter
    exporter.close()


@pytest.mark.parametrize("name", one_in(2, HOSTILE))
def test_a_page_takes_bounded_time_and_memory_of_which_nothing_is_ours(
    exporter, template, tmp_path, name
):
    notebook = room.solved(template)
    notebook.cells.insert(0, HOSTILE[name])
    (tmp_path / "02.ipynb").write_text(json.dumps(notebook))
    begun, before = time.process_time(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    page, _ = exporter.from_filename(str(tmp_path / "02.ipynb"))
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert time.process_time() - begun < 1  # what it took was taken elsewhere
    assert "reinforce_loss" in page and len(page) < showing.LARGEST_PAGE
    assert (after - before) * 1024 < 4 * showing.LARGEST_PAGE


def test_only_formgrader_shows_the_model_answer_beside_the_students(exporter, template, tmp_path):
    path, model = tmp_path / f"{room.LESSON}.ipynb", "for graders only"
    path.write_text(json.dumps(room.solved(template)))
    (expected,) = [
        cell.source
        for cell in load_source(Course.open(template), room.LESSON).cells
        if cell.metadata.get("nbgrader", {}).get("grade_id") == "applause"
    ]
    page, _ = exporter.from_filename(str(path), {"submission_id": "1"})
    before, _, after = page.partition(model)
    assert after and room.ANSWER in after and room.ANSWER not in before
    words = expected.split("`")[0].split("$")[0].split("*")[0].strip().split("\n")[0]
    assert words and words in after.partition(room.ANSWER)[0]
    assert model not in exporter.from_filename(str(path), {"nbgrader": {}})[0]
