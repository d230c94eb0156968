"""Every lesson is graded from its declarations alone: solved gives all points, blank gives none."""

import copy
import json

import nbformat
import pytest
from shared import one_in
from small_courses import write_course

from rlcourse.authoring import stubs
from rlcourse.authoring.builder import build
from rlcourse.courses import shipped
from rlcourse.exercises import all as all_exercises
from rlcourse.grading.engine import grade

LESSONS = [lesson.name for lesson in shipped().lessons]


@pytest.mark.parametrize("lesson", one_in(5, LESSONS[:-1]))  # test_contest.py has the last one
def test_a_solved_lesson_gets_all_points_and_a_blank_one_none(lesson, tmp_path):
    write_course(tmp_path / "course", {lesson: None})
    exercises = {e.name: e for e in all_exercises(contests=True) if e.lesson == lesson}
    build(root=tmp_path, progress=False)
    blank = nbformat.read(tmp_path / "notebooks" / lesson / f"{lesson}.ipynb", as_version=4)
    solved = copy.deepcopy(blank)
    for cell in solved.cells:
        name = cell.metadata.get("nbgrader", {}).get("grade_id")
        if name in exercises:
            cell.source = stubs.solution(exercises[name].reference, marks=False)
    for student, notebook in (("solved", solved), ("blank", blank)):
        path = tmp_path / "course" / "submitted" / student / lesson / f"{lesson}.ipynb"
        path.parent.mkdir(parents=True)
        path.write_text(json.dumps(notebook))
    rows = {row.student: row for row in grade(lesson, course=tmp_path / "course").rows}
    total = sum(float(exercise.points) for exercise in exercises.values())
    missed = {n: e for n, e in rows["solved"].exercises.items() if e["points"] < e["possible"]}
    assert missed == {}
    assert rows["solved"].score == rows["solved"].possible == total
    assert rows["solved"].status == rows["blank"].status == "graded"
    assert rows["blank"].score == 0
