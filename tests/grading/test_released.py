"""A released lesson that changes: its cells in the gradebook, where submissions have points."""

import pytest
from nbformat.v4 import new_markdown_cell, new_notebook
from nbgrader.api import Gradebook

from rlcourse.errors import UserError
from rlcourse.grading.books.gradebook import Course
from rlcourse.grading.books.released import enter_lesson

LESSON = "02_policy_gradient"


def source(**points: float):
    """A lesson with these questions."""
    about = {"grade": True, "solution": True, "locked": False, "schema_version": 3, "task": False}
    about |= {"cell_type": "markdown"}
    cells = [
        new_markdown_cell("?", metadata={"nbgrader": about | {"grade_id": name, "points": n}})
        for name, n in points.items()
    ]
    return new_notebook(cells=cells)


def test_points_may_change_and_questions_may_not_once_there_are_submissions(tmp_path):
    opened = Course.open(tmp_path)

    def entered(**points: float) -> list[tuple[str, float | None, float]]:
        enter_lesson(opened.directory, LESSON, source(**points), opened.config)
        with Gradebook(opened.directory.db_url) as book:
            found = book.update_or_create_submission(LESSON, "ada").notebooks[0].grades
            return [(grade.name, grade.manual_score, grade.max_score) for grade in found]

    enter_lesson(opened.directory, LESSON, source(), opened.config)
    enter_lesson(opened.directory, LESSON, source(why=2), opened.config)
    with Gradebook(opened.directory.db_url) as book:
        book.add_student("ada")
        book.add_submission(LESSON, "ada")
        book.find_grade("why", LESSON, LESSON, "ada").manual_score = 1.5
        book.db.commit()
    assert entered(why=4) == [("why", 1.5, 4.0)]
    for others in ({"silence": 3}, {"why": 2, "silence": 3}):
        with pytest.raises(UserError, match="no longer has the questions and exercises"):
            entered(**others)
    assert entered(why=4) == [("why", 1.5, 4.0)]
