"""From a lesson to its three notebooks, without starting a kernel."""

import nbformat
import pytest
from fixture_course import LESSON, NAME, declare
from small_courses import write_course

from rlcourse.authoring.builder import build
from rlcourse.authoring.lesson import read_lesson
from rlcourse.authoring.notebooks import dumps, solved_notebook
from rlcourse.errors import UserError


def notebook(root, folder):
    name = f"{NAME}.ipynb"
    nested = {"solutions": root / "solutions" / name}
    return nested.get(folder, root / folder / NAME / name)


def grade_ids(node):
    return [c.metadata.nbgrader.grade_id for c in node.cells if "nbgrader" in c.metadata]


def put_solution(root, registry):
    """A solved notebook with a made-up picture in every code cell, as execution would leave it."""
    student = nbformat.read(notebook(root, "notebooks"), as_version=4)
    lesson = read_lesson(root / "course" / "lessons" / NAME / "lesson.md", registry)
    solved = solved_notebook(lesson, student)
    cells = [c for c in solved.cells if c.cell_type == "code" and c.id != "set-up"]
    for number, cell in enumerate(cells):
        cell.execution_count = number + 1
        cell.outputs = [nbformat.v4.new_output("stream", text=f"output {number}")]
    notebook(root, "solutions").parent.mkdir(exist_ok=True)
    notebook(root, "solutions").write_text(dumps(solved), encoding="utf-8")
    return dumps(solved)


@pytest.fixture
def make(course, registry):
    def make(*args, **kwargs):
        return build(*args, root=course, registry=registry, progress=False, **kwargs)

    return make


def test_student_notebook_has_stubs_and_checks_but_no_solution_and_no_hidden_test(make, course):
    make()
    node = nbformat.read(notebook(course, "notebooks"), as_version=4)
    nbformat.validate(node)
    text = notebook(course, "notebooks").read_text(encoding="utf-8")
    for secret in ("SOLUTION", "HIDDEN", "hidden=True", "masked_fill", "product over its tokens"):
        assert secret not in text
    assert grade_ids(node) == [
        "score_function",
        "check_score_function",
        "reinforce_loss",
        "check_reinforce_loss",
        "why_sum",
    ]
    cells = {cell.id: cell for cell in node.cells}
    assert cells["reinforce_loss"].source.endswith("\n    raise NotImplementedError")
    assert cells["check_reinforce_loss"].source == "check(reinforce_loss)"
    assert cells["check_reinforce_loss"].metadata.nbgrader.points == 4
    assert cells["why_sum"].source == "*Write your answer here.*"
    assert all(not c.get("outputs") for c in node.cells)
    assert node.metadata.title == "Fixture lesson"


def test_source_notebook_is_what_nbgrader_needs(make, course):
    make()
    node = nbformat.read(notebook(course, "course/source"), as_version=4)
    cells = {cell.id: cell for cell in node.cells}
    check = cells["check_score_function"].source.splitlines()
    assert check[0] == "check(score_function)"
    assert check[1] == "### BEGIN HIDDEN TESTS" and check[-1] == "### END HIDDEN TESTS"
    assert check[-2].endswith(".points")  # the number that nbgrader takes for partial credit
    assert "### BEGIN SOLUTION" in cells["score_function"].source
    assert {c.metadata.nbgrader.schema_version for c in node.cells if "nbgrader" in c.metadata} == {
        3
    }
    demo = next(c for c in node.cells if "demo" in c.metadata.get("tags", []))
    assert "skip-execution" in demo.metadata.tags


def test_a_second_build_gives_the_same_bytes_and_writes_nothing(make, course):
    first = make()[0]
    assert {path.name for path in first.written} == {f"{NAME}.ipynb"} and len(first.written) == 2
    before = [path.read_bytes() for path in first.written]
    assert make()[0].written == ()
    for path in first.written:
        path.unlink()
    assert [path.read_bytes() for path in make()[0].written] == before


def test_cell_ids_survive_an_edit_elsewhere(make, course):
    make()
    before = [c.id for c in nbformat.read(notebook(course, "notebooks"), as_version=4).cells]
    path = course / "course" / "lessons" / NAME / "lesson.md"
    path.write_text(path.read_text().replace("Write the score.", "Write the score, please."))
    make()
    after = [c.id for c in nbformat.read(notebook(course, "notebooks"), as_version=4).cells]
    assert len(before) == len(after) and len(set(after)) == len(after)
    assert sum(a != b for a, b in zip(before, after, strict=True)) == 1


def test_a_file_beside_the_lesson_is_not_released(make, course):
    make()
    (course / "course" / "source" / NAME / "answers.txt").write_text("secret")
    make()
    assert [p.name for p in (course / "notebooks" / NAME).iterdir()] == [f"{NAME}.ipynb"]


def test_an_import_that_an_exercise_needs_must_stand_above_it(make, course):
    path = course / "course" / "lessons" / NAME / "lesson.md"
    path.write_text(path.read_text().replace("from torch import Tensor\n", ""))
    with pytest.raises(UserError, match=r"90_fixture/lesson.md:\d+: .*uses Tensor: import it"):
        make()


def test_pictures_survive_an_edit_of_the_text_but_not_of_the_code(make, course, registry):
    assert make()[0].solution == "missing"
    put_solution(course, registry)
    path = course / "course" / "lessons" / NAME / "lesson.md"
    path.write_text(path.read_text().replace("The end.", "The very end."))
    assert make()[0].solution == "current"
    kept = notebook(course, "solutions").read_text(encoding="utf-8")
    assert "The very end." in kept and "output 1" in kept
    path.write_text(path.read_text().replace("the demo ran", "the demo has run"))
    assert make()[0].solution == "stale"
    assert notebook(course, "solutions").read_text(encoding="utf-8") == kept


def test_solutions_hold_answers_and_no_marks(make, course, registry):
    make()
    text = put_solution(course, registry)
    assert "product over its tokens" in text and "masked_fill" in text
    assert "SOLUTION" not in text and "HIDDEN" not in text and "hidden=True" not in text


def test_check_passes_on_what_was_built_and_names_each_file_that_drifted(make, course, registry):
    make()
    with pytest.raises(UserError, match=r"solutions/90_fixture.ipynb .*--execute 90_fixture"):
        make(check=True)
    put_solution(course, registry)
    with pytest.raises(UserError, match=r"90_fixture/recorded.json .*rlcourse build 90_fixture"):
        make(check=True)
    make()
    assert make(check=True) == []
    student = notebook(course, "notebooks")
    good = student.read_text(encoding="utf-8")
    student.write_text(good.replace("Write the score.", "Write it."), encoding="utf-8")
    with pytest.raises(UserError, match=r"notebooks/90_fixture/90_fixture.ipynb .*rlcourse build"):
        make(check=True)
    assert "Write it." in student.read_text(encoding="utf-8")  # a check writes nothing


def test_an_error_in_one_lesson_leaves_every_notebook_alone(make, course, registry):
    write_course(course / "course", {NAME: LESSON, "91_broken": "no title"})
    with pytest.raises(UserError, match="91_broken"):
        make()
    assert not (course / "notebooks").exists()


def test_a_release_that_nbgrader_refuses_names_the_lesson(course, registry):
    registry[0] = declare("score_function", points=-1)
    with pytest.raises(UserError, match=f"nbgrader could not release lesson {NAME}"):
        build(root=course, registry=registry, progress=False)


def test_answers_in_the_students_notebook_are_not_written_over_unless_one_insists(make, course):
    make()
    student = notebook(course, "notebooks")
    answered = student.read_text(encoding="utf-8").replace(
        "raise NotImplementedError", "return 1", 1
    )
    student.write_text(answered, encoding="utf-8")
    with pytest.raises(UserError, match=r"90_fixture.ipynb holds answers \(score_function\)"):
        make()
    assert student.read_text(encoding="utf-8") == answered
    make(force=True)
    assert "return 1" not in student.read_text(encoding="utf-8")


def test_another_stub_is_no_answer(make, course, registry):
    """An author's change of a docstring, or of points, must not ask for --force."""
    make()
    registry[0] = declare("score_function", points=7)
    assert make()[0].written
