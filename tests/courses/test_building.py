"""What course.toml says reaches the notebooks: points, and pictures that are known."""

import nbformat
from test_errors import change

from rlcourse import published
from rlcourse.authoring.builder import build
from rlcourse.courses import current, shipped

LESSON = "02_policy_gradient"


def test_points_of_exercises_and_questions_reach_the_notebooks(own):
    change(own / "course.toml", "# [points]", "[points]\nreinforce_loss = 6\napplause = 5\n#")
    build([LESSON], root=own, progress=False)
    notebook = nbformat.read(current(own).notebook(LESSON), as_version=4)
    points = {
        cell.metadata.nbgrader.grade_id: cell.metadata.nbgrader.points
        for cell in notebook.cells
        if cell.metadata.get("nbgrader", {}).get("grade")
    }
    assert points["check_reinforce_loss"] == 6 and points["applause"] == 5
    assert any("6 points · " in cell.source for cell in notebook.cells)
    ours = nbformat.read(shipped().notebook(LESSON), as_version=4)
    unchanged = {cell.id: cell.metadata.nbgrader.points for cell in ours.cells if "points" in
                 cell.metadata.get("nbgrader", {})}  # fmt: skip
    assert unchanged["applause"] != 5
    assert points["check_score_function"] == unchanged["check_score_function"]


def test_a_taken_lesson_keeps_the_pictures_that_it_has_at_home(own):
    (built,) = build([LESSON], root=own, progress=False)
    assert built.solution == "current"
    solved = nbformat.read(current(own).solutions / f"{LESSON}.ipynb", as_version=4)
    assert any(cell.get("outputs") for cell in solved.cells)
    (built,) = build(["01"], root=own, progress=False)
    assert built.solution == "missing"


def test_a_changed_reference_is_that_of_the_folder_one_stands_in(own, tmp_path, monkeypatch):
    """Also where an older copy of the same package is installed."""
    import sys

    from rlcourse import exercises

    older = tmp_path / "site-packages" / "ours"
    older.mkdir(parents=True)
    (older / "__init__.py").touch()
    monkeypatch.setattr(sys, "path", [str(older.parent), *sys.path])
    exercise = exercises.get("explained_variance", current(own))
    assert exercise.reference.__code__.co_filename == str(own / "functions.py")


def test_no_notebook_of_it_says_that_it_lies_where_rlcourse_is_published(own, monkeypatch):
    monkeypatch.setattr(published, "REPOSITORY", "https://github.com/some-one/rlcourse")
    build(["01"], root=own, progress=False)
    text = current(own).notebook("01_critics").read_text("utf-8")
    assert "some-one" not in text and "find_spec" in text
