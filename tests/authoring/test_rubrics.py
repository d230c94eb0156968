"""Every question graded by hand says how its points split; only graders see it."""

import re

import pytest
from small_courses import write_course

from rlcourse import exercises
from rlcourse.authoring.lesson import read_lesson
from rlcourse.authoring.notebooks import solved_notebook, source_notebook, student_notebook
from rlcourse.courses import current, shipped
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


@pytest.mark.parametrize("folder", shipped().lessons, ids=lambda lesson: lesson.name)
def test_every_question_of_the_course_has_one_that_sums_to_its_points(folder):
    lesson = read_lesson(folder.text, exercises.all(shipped(), contests=True), shipped())
    for cell in (c for c in lesson.cells if c.kind == "question"):
        parts = re.findall(r"^- \(([\d.]+)\) .{20}", lesson.rubric(cell.name), re.MULTILINE)
        assert len(parts) >= 2 and sum(map(float, parts)) == cell.points, cell.name


def test_graders_see_it_and_students_do_not(tmp_path):
    course = current(write_course(tmp_path / "course", {"90_fixture": TEXT}))
    lesson = read_lesson(course.lessons[0].text, [], course)
    source, _ = source_notebook(lesson, ours=False)
    student = student_notebook(source, lesson.name, course.directory / "nbgrader_config.py")
    solved = solved_notebook(lesson, student)
    answer = source.cells[-1].source
    assert "- (1.5) Says because" in answer
    for notebook in (student, solved):
        assert "Says because" not in str(notebook)
    shown, _ = show_beside({"why": answer}, student, {})
    assert "> - (0.5) Nothing else." in shown.cells[-2].source
