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
from rlcourse.authoring.runner import is_demo
from rlcourse.courses import shipped

pytestmark = [pytest.mark.slow, pytest.mark.browser]

REPOSITORY = Path(__file__).parents[2]
LESSON = "02_policy_gradient"
EXERCISES = 5
LESSONS = [lesson.name for lesson in shipped().lessons]
OTHERS = [name for name in LESSONS if name != LESSON]
THIRDS = [OTHERS[part::3] for part in range(3)]


@pytest.fixture(scope="module")
def lessons(tmp_path_factory):
    """A copy of ``notebooks/``, and the lessons solved, not run; training has its own tests."""
    root = tmp_path_factory.mktemp("lessons")
    shutil.copytree(REPOSITORY / "notebooks", root, dirs_exist_ok=True)
    for name in LESSONS:
        lesson = read_lesson(shipped().lesson(name).text, exercises.all(contests=True))
        student = nbformat.read(root / name / f"{name}.ipynb", as_version=4)
        solved = solved_notebook(lesson, student)
        solved.cells = [cell for cell in solved.cells if not is_demo(cell)]
        nbformat.write(solved, root / f"solved_{name}.ipynb")
    for names in THIRDS:
        nbformat.write(joined(root, names), root / f"solved_{names[0]}_and_others.ipynb")
    return root


def joined(root, names):
    """The solved lessons in one notebook, whose kernel forgets all names between two of them."""
    whole = nbformat.v4.new_notebook()
    for name in names:
        lesson = nbformat.read(root / f"solved_{name}.ipynb", as_version=4)
        for cell in lesson.cells:
            cell.id = f"{name[:2]}-{cell.id}"
        whole.cells += [*lesson.cells, nbformat.v4.new_code_cell("%reset -f")]
        whole.metadata = lesson.metadata
    return whole


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


def test_an_untouched_lesson_runs_through_and_says_what_is_not_written(page_and_url):
    notebook = Notebook(*page_and_url, f"{LESSON}/{LESSON}.ipynb")
    notebook.run_all()
    assert notebook.errors() == []
    text = notebook.outputs()
    assert text.count("is not written yet") == EXERCISES
    assert "Finish reinforce_loss first" in text
    notebook.screenshot("blank-light", at="reinforce_loss is not written yet")
    notebook.set_theme("JupyterLab Dark")
    notebook.screenshot("blank-dark", at="reinforce_loss is not written yet")
    notebook.set_theme("JupyterLab Light")


def test_a_solved_lesson_runs_green(page_and_url):
    notebook = Notebook(*page_and_url, f"solved_{LESSON}.ipynb")
    notebook.run_all()
    assert notebook.errors() == []
    text = notebook.outputs()
    assert len(re.findall(r"✓ \w+\s+(\d+) of \1 cases agree", text)) == EXERCISES
    assert "Finish" not in text and "not written yet" not in text
    assert notebook.pictures() >= 3
    notebook.screenshot("solved-light", at="img")
    notebook.set_theme("JupyterLab Dark")
    notebook.screenshot("solved-dark", at="img")
    notebook.set_theme("JupyterLab Light")


@pytest.mark.weekly
@pytest.mark.parametrize("names", THIRDS, ids=" ".join)
def test_every_lesson_runs_green_when_solved(page_and_url, names):
    """Untouched, all of them run in a kernel, demo cells included, in ../authoring."""
    written = sum(exercise.lesson in names for exercise in exercises.all(contests=True))
    solved = Notebook(*page_and_url, f"solved_{names[0]}_and_others.ipynb")
    solved.run_all()
    assert solved.errors() == []
    text = solved.outputs()
    right = re.findall(r"✓ \w+\s+(?:(\d+) of \1 cases agree|accuracy )", text)
    assert len(right) >= written
    assert "not written yet" not in text
    solved.screenshot(f"{names[0]}-and-others-solved")


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
    notebook.screenshot("wrong-light", at="✗ reinforce_loss")
    notebook.set_theme("JupyterLab Dark")
    notebook.screenshot("wrong-dark", at="✗ reinforce_loss")
    notebook.set_theme("JupyterLab Light")


def test_the_validate_button_judges_the_whole_notebook(page_and_url):
    solved = Notebook(*page_and_url, f"solved_{LESSON}.ipynb")
    assert "Success" in solved.validate()
    blank = Notebook(*page_and_url, f"{LESSON}/{LESSON}.ipynb")
    verdict = blank.validate()
    blank.screenshot("validate-blank")
    assert verdict.count("The following cell failed") == EXERCISES + 1  # and the open question
    assert "reinforce_loss is not written yet" in verdict
