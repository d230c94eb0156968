"""Solutions: they run in a namespace of their lesson's own, and a failing cell is named."""

import ast

import nbformat
import pytest
from fixture_course import LESSON, NAME, REPOSITORY

from rlcourse import exercises
from rlcourse.authoring import build
from rlcourse.authoring.lesson import read_lesson
from rlcourse.authoring.stubs import solution
from rlcourse.errors import UserError

DEMO_LINE = LESSON.splitlines().index('```python tags=["demo"]') + 1
LESSONS = sorted((REPOSITORY / "course" / "lessons").glob("*.md"))


def imports_of(source):
    """Only the import statements of a cell."""
    nodes = ast.parse(source).body
    return [node for node in nodes if isinstance(node, ast.Import | ast.ImportFrom)]


@pytest.mark.parametrize("path", LESSONS, ids=lambda path: path.stem)
def test_every_solution_passes_when_pasted_where_only_the_lesson_imports_exist(path, monkeypatch):
    monkeypatch.setenv("NBGRADER_EXECUTION", "autograde")  # nobody's progress
    lesson = read_lesson(path, exercises.all())
    namespace: dict = {}
    for cell in lesson.cells:
        if cell.kind == "code":
            module = ast.Module(imports_of(cell.source), type_ignores=[])
            exec(compile(module, str(path), "exec"), namespace)
        elif cell.kind == "exercise":
            exec(solution(lesson.exercises[cell.name].reference), namespace)
            assert exercises.check(namespace[cell.name], seed=0).passed, cell.name


def test_every_lesson_is_built_and_committed_as_its_sources_give():
    build(check=True, root=REPOSITORY, progress=False)


@pytest.fixture
def execute(course, registry, tmp_path, monkeypatch):
    monkeypatch.setenv("RLCOURSE_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("OMP_NUM_THREADS", "1")

    def execute(old="", new=""):
        path = course / "course" / "lessons" / f"{NAME}.md"
        path.write_text(path.read_text().replace(old, new))
        return build(execute=True, root=course, registry=registry, progress=False)[0]

    return execute


def test_an_executed_solution_shows_results_and_leaves_nothing_else_behind(
    execute, course, registry, tmp_path
):
    assert execute().solution == "executed"
    path = course / "solutions" / f"{NAME}.ipynb"
    node = nbformat.read(path, as_version=4)
    text = path.read_text(encoding="utf-8")
    assert "the demo ran [0.5, -0.5]" in text  # demo cells run in solutions
    assert "✓ score_function" in text and "hidden" not in text
    assert node.metadata.language_info == {"name": "python"}  # no version to drift
    assert all("execution" not in cell.metadata for cell in node.cells)
    assert not (tmp_path / "home").exists()  # the author's own progress is left alone
    assert build(check=True, root=course, registry=registry, progress=False) == []
    assert build(root=course, registry=registry, progress=False)[0].written == ()


@pytest.mark.parametrize(
    ("new", "sentence"),
    [
        ("1 / 0", "the cell fails: ZeroDivisionError: division by zero"),
        ("import os; os._exit(1)", "the cell fails: the kernel died"),
        (
            "display(check(torch.zeros_like, exercise='score_function'))",
            "the solution of score_function is not passed",
        ),
    ],
)
def test_a_solution_that_fails_names_the_line_and_keeps_the_old_file(
    execute, course, new, sentence
):
    path = course / "solutions" / f"{NAME}.ipynb"
    path.parent.mkdir()
    path.write_text("the old one")
    demo = 'print("the demo ran", score_function(torch.zeros(2), 0).tolist())'
    with pytest.raises(UserError, match=f"{NAME}.md:{DEMO_LINE}: {sentence}"):
        execute(demo, new)
    assert path.read_text() == "the old one"
    assert [p.name for p in path.parent.iterdir()] == [path.name]
