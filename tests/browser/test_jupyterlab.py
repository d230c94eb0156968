"""A lesson in JupyterLab, as a student meets it: run, read, solve, run again, validate."""

import os
import re
import shutil
from pathlib import Path

import nbformat
import pytest
from lab_driver import Notebook, browser_page, chromium, jupyterlab

from rlcourse import exercises
from rlcourse.authoring.lesson import read_lesson
from rlcourse.authoring.notebooks import solved_notebook
from rlcourse.courses import shipped

pytestmark = [pytest.mark.slow, pytest.mark.browser]

REPOSITORY = Path(__file__).parents[2]
LESSON = "02_policy_gradient"
EXERCISES = 5


@pytest.fixture(scope="module")
def lessons(tmp_path_factory):
    """A copy of ``notebooks/``, and the lesson solved, not run; training has its own tests."""
    root = tmp_path_factory.mktemp("lessons")
    shutil.copytree(REPOSITORY / "notebooks", root, dirs_exist_ok=True)
    lesson = read_lesson(shipped().lesson(LESSON).text, exercises.all(contests=True))
    student = nbformat.read(root / LESSON / f"{LESSON}.ipynb", as_version=4)
    solved = solved_notebook(lesson, student)
    solved.cells = [cell for cell in solved.cells if "demo" not in cell.metadata.get("tags", [])]
    nbformat.write(solved, root / f"solved_{LESSON}.ipynb")
    return root


@pytest.fixture(scope="module")
def page_and_url(lessons, tmp_path_factory):
    if not chromium():
        reason = "no Chromium or Chrome on PATH: install one to drive JupyterLab"
        if os.environ.get("CI") == "true":
            pytest.fail(reason)
        pytest.skip(reason)
    home = tmp_path_factory.mktemp("home")
    with jupyterlab(lessons, home) as url, browser_page() as page:
        yield page, url


@pytest.mark.weekly
def test_an_untouched_lesson_runs_through_and_says_what_is_not_written(page_and_url):
    notebook = Notebook(*page_and_url, f"{LESSON}/{LESSON}.ipynb")
    notebook.run_all()
    assert notebook.errors() == []
    text = notebook.outputs()
    assert text.count("is not written yet") == EXERCISES
    assert "Finish reinforce_loss first" in text


@pytest.mark.weekly
def test_a_solved_lesson_runs_green(page_and_url):
    notebook = Notebook(*page_and_url, f"solved_{LESSON}.ipynb")
    notebook.run_all()
    assert notebook.errors() == []
    text = notebook.outputs()
    assert len(re.findall(r"✓ \w+\s+(\d+) of \1 cases agree", text)) == EXERCISES
    assert "Finish" not in text and "not written yet" not in text
    assert notebook.pictures() >= 3


def test_a_wrong_answer_is_named_where_the_student_looks(page_and_url, lessons):
    node = nbformat.read(lessons / f"solved_{LESSON}.ipynb", as_version=4)
    cell = next(cell for cell in node.cells if cell.id == "reinforce_loss")
    assert cell.source.count(".sum(dim=1)") == 1
    cell.source = cell.source.replace(".sum(dim=1)", ".mean(dim=1)")
    nbformat.write(node, lessons / "wrong.ipynb")
    notebook = Notebook(*page_and_url, "wrong.ipynb")
    notebook.run_all()
    assert notebook.errors() == []
    assert "those of a mean over all N·T positions" in notebook.outputs()


@pytest.mark.weekly
def test_the_validate_button_accepts_a_solved_notebook(page_and_url):
    solved = Notebook(*page_and_url, f"solved_{LESSON}.ipynb")
    assert "Success" in solved.validate()


def test_the_validate_button_judges_the_whole_notebook(page_and_url):
    blank = Notebook(*page_and_url, f"{LESSON}/{LESSON}.ipynb")
    verdict = blank.validate()
    assert verdict.count("The following cell failed") == EXERCISES + 1  # and the open question
    assert "reinforce_loss is not written yet" in verdict
