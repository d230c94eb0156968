"""Solutions: they run in a namespace of their lesson's own, and a failing cell is named."""

import ast

import nbformat
import pytest
from fixture_course import LESSON, NAME, REPOSITORY, declare
from torch import Tensor

from rlcourse import check, exercises
from rlcourse.authoring.builder import build
from rlcourse.authoring.kernel import error_of, run_cells, verdict_of
from rlcourse.authoring.lesson import read_lesson
from rlcourse.authoring.stubs import solution
from rlcourse.courses import shipped
from rlcourse.errors import UserError

DEMO_LINE = LESSON.splitlines().index('```python tags=["demo"]') + 1
HANGS = 1800  # seconds; only so that a cell without end ends
LESSONS = [lesson.name for lesson in shipped().lessons]


def imports_of(source):
    """Only the import statements of a cell."""
    nodes = ast.parse(source).body
    return [node for node in nodes if isinstance(node, ast.Import | ast.ImportFrom)]


@pytest.mark.slow
@pytest.mark.parametrize("name", LESSONS)
def test_every_solution_passes_when_pasted_where_only_the_lesson_imports_exist(name, monkeypatch):
    monkeypatch.setenv("NBGRADER_EXECUTION", "autograde")  # nobody's progress
    lesson = read_lesson(shipped().lesson(name).text, exercises.all(contests=True))
    shown = nbformat.read(REPOSITORY / "solutions" / f"{name}.ipynb", as_version=4).cells
    shown = {cell.id: verdict_of(cell) for cell in shown if cell.id.startswith("check_")}
    namespace: dict = {}
    for cell in lesson.cells:
        if cell.kind == "code":
            module = ast.Module(imports_of(cell.source), type_ignores=[])
            exec(compile(module, name, "exec"), namespace)
        elif cell.kind == "exercise":
            if lesson.exercises[cell.name].contest:
                continue  # a whole trainer, which tests/exercises/test_trial.py lets train
            exec(solution(lesson.exercises[cell.name].reference), namespace)
            result = check(namespace[cell.name], seed=0)
            assert result.passed, cell.name
            stale = f"execute it again: rlcourse build {name[:2]} --force --execute"
            said = shown[f"check_{cell.name}"]["message"].partition("\n")[0]
            assert said == result.message.partition("\n")[0], stale


@pytest.mark.parametrize("name", LESSONS)
def test_no_cell_shows_an_object_that_nobody_asked_for(name):
    """Such as the legend that matplotlib returns: ``;`` after a cell's last line hides it."""
    cells = nbformat.read(REPOSITORY / "solutions" / f"{name}.ipynb", as_version=4).cells
    shown = [o.data for cell in cells for o in cell.get("outputs", []) if "data" in o]
    assert not [text for data in shown if " at 0x" in (text := data.get("text/plain", ""))]


def test_every_lesson_is_built_and_committed_as_its_sources_give():
    build(check=True, root=REPOSITORY, progress=False)


@pytest.mark.weekly
def test_blank_lessons_run_through_demo_cells_included(tmp_path, monkeypatch):
    """In one kernel, which forgets all names between two lessons: to start one takes longest."""
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    monkeypatch.setenv("RLCOURSE_HOME", str(tmp_path))
    node = nbformat.v4.new_notebook()
    for name in LESSONS:
        released = REPOSITORY / "notebooks" / name / f"{name}.ipynb"
        node.cells += nbformat.read(released, as_version=4).cells
        node.cells.append(nbformat.v4.new_code_cell("%reset -f"))
    stopped = run_cells(node, tmp_path, timeout=HANGS, stop_on_error=True, progress=False)
    assert stopped is None, f"{node.cells[stopped].source}\n{error_of(node.cells[stopped])}"
    verdicts = [verdict_of(cell) for cell in node.cells if cell.id.startswith("check_")]
    assert len(verdicts) == len(exercises.all(contests=True))
    assert all(verdict["unwritten"] for verdict in verdicts)


@pytest.fixture
def execute(course, registry, tmp_path, monkeypatch):
    monkeypatch.setenv("RLCOURSE_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("OMP_NUM_THREADS", "1")

    def execute(old="", new=""):
        path = course / "course" / "lessons" / NAME / "lesson.md"
        path.write_text(path.read_text().replace(old, new))
        return build(execute=True, root=course, registry=registry, progress=False)[0]

    return execute


@pytest.mark.slow
def test_an_executed_solution_shows_results_and_leaves_nothing_else_behind(
    execute, course, registry, tmp_path
):
    assert execute().solution == "executed"
    path = course / "solutions" / f"{NAME}.ipynb"
    node = nbformat.read(path, as_version=4)
    text = path.read_text(encoding="utf-8")
    assert "the demo ran [0.5, -0.5]" in text  # demo cells run in solutions
    assert "✓ score_function" in text
    assert not any("hidden" in cell.source for cell in node.cells)
    assert "widget-view" not in text and "widgets" not in node.metadata  # a bar without a kernel
    assert node.metadata.language_info == {"name": "python"}  # no version to drift
    assert all("execution" not in cell.metadata for cell in node.cells)
    assert not (tmp_path / "home").exists()  # the author's own progress is left alone
    assert build(check=True, root=course, registry=registry, progress=False) == []
    assert build(root=course, registry=registry, progress=False)[0].written == ()


def score_function(logits: Tensor, action: int | Tensor) -> Tensor:
    """A solution that is none."""
    return logits - action


@pytest.mark.slow
@pytest.mark.parametrize(
    ("code", "sentence"),
    [
        ("1 / 0", "the cell fails: ZeroDivisionError: division by zero"),
        ("import os; os._exit(1)", "the cell fails: the kernel died"),
    ],
)
def test_a_cell_that_fails_is_named_by_its_line_and_the_old_file_stays(
    execute, course, code, sentence
):
    path = course / "solutions" / f"{NAME}.ipynb"
    path.parent.mkdir()
    path.write_text("the old one")
    demo = 'print("the demo ran", score_function(torch.zeros(2), 0).tolist())'
    with pytest.raises(UserError, match=f"{NAME}/lesson.md:{DEMO_LINE}: {sentence}"):
        execute(demo, code)
    assert path.read_text() == "the old one"
    assert [p.name for p in path.parent.iterdir()] == [path.name]


@pytest.mark.slow
def test_a_solution_that_does_not_pass_its_check_is_not_written(execute, course, registry):
    registry[0] = declare("score_function", reference=score_function)
    with pytest.raises(UserError, match="the solution of score_function does not pass"):
        execute()
    assert not (course / "solutions").exists()
