"""Every question graded by hand says how its points split; only graders see it."""

import pytest
from small_courses import write_course

from rlcourse import exercises
from rlcourse.authoring.lesson import read_lesson
from rlcourse.authoring.notebooks import solved_notebook, source_notebook, student_notebook
from rlcourse.authoring.rubrics import total
from rlcourse.courses import current, shipped
from rlcourse.errors import UserError
from rlcourse.grading.pages.showing import show_beside

TEXT = """# 90 · A

<!-- #region question="why" points=2 -->
Why?
<!-- #endregion -->

<!-- #region answer="why" -->
Because.
<!-- #endregion -->

<!-- #region rubric="why" -->
- (1.5) Says because,
  in full.
- (0.5) Nothing else.
<!-- #endregion -->
"""


@pytest.fixture
def course(tmp_path):
    def write(text=TEXT, more=""):
        directory = write_course(tmp_path / "course", {"90_fixture": text})
        (directory / "course.toml").open("a").write(more)
        return current(directory)

    return write


def read(course):
    return read_lesson(course.lessons[0].text, [], course)


@pytest.mark.parametrize("folder", shipped().lessons, ids=lambda lesson: lesson.name)
def test_every_question_of_the_course_has_one(folder):
    lesson = read_lesson(folder.text, exercises.all(shipped(), contests=True), shipped())
    for cell in (c for c in lesson.cells if c.kind == "question"):
        parts = lesson.rubric(cell.name)
        assert len(parts) >= 2 and total(parts) == cell.points, cell.name
        assert all(len(part.demand) > 20 for part in parts)


def test_its_parts_follow_the_points_that_a_course_gives(course):
    assert [p.points for p in read(course()).rubric("why")] == [1.5, 0.5]
    lesson = read(course(more="[points]\nwhy = 4\n"))
    assert [p.points for p in lesson.rubric("why")] == [3, 1]
    assert lesson.rubric("why")[0].demand == "Says because, in full."


def test_graders_see_it_and_students_do_not(course):
    lesson = read(course())
    source, _ = source_notebook(lesson, ours=False)
    student = student_notebook(source, lesson.name, course().directory / "nbgrader_config.py")
    solved = solved_notebook(lesson, student)
    answer = source.cells[-1].source
    assert "**1.5 points** Says because" in answer
    for notebook in (student, solved):
        assert "Says because" not in str(notebook)
    shown, _ = show_beside({"why": answer}, student, {})
    assert "> - **0.5 points** Nothing else." in shown.cells[-2].source


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("(0.5)", "(1)", "sum to 2.5, and the question has 2 points"),
        ("- (0.5) Nothing", "Nothing", "a line of a rubric is"),
        ('rubric="why"', 'rubric="who"', "'who' lacks a question"),
    ],
)
def test_one_that_does_not_fit_is_named_with_its_line(course, old, new, said):
    with pytest.raises(UserError, match=said) as caught:
        read(course(TEXT.replace(old, new)))
    assert "lesson.md:11:" in str(caught.value)
