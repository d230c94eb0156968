"""A released lesson that changes: its cells in the gradebook, where submissions have points."""

import pytest
from nbformat.v4 import new_markdown_cell, new_notebook
from nbgrader.api import Gradebook
from traitlets.config import Config

from rlcourse.errors import UserError
from rlcourse.grading.books.released import keep_in_step

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


@pytest.fixture
def book(tmp_path):
    """A lesson with one question, for which ada has 1.5 points by hand."""
    url = f"sqlite:///{tmp_path}/gradebook.db"
    with Gradebook(url) as found:
        keep_in_step(found, LESSON, source(why=2), Config(), url)
        found.add_student("ada")
        found.add_submission(LESSON, "ada")
        grade = found.find_grade("why", LESSON, LESSON, "ada")
        grade.manual_score, grade.needs_manual_grade = 1.5, False
        found.db.commit()
        found.in_step = lambda notebook: keep_in_step(found, LESSON, notebook, Config(), url)
        yield found


def points(book) -> dict[str, tuple[float | None, float]]:
    found = book.find_submission(LESSON, "ada").notebooks[0].grades
    return {grade.name: (grade.manual_score, grade.max_score) for grade in found}


def test_a_question_that_is_added_leaves_all_points(book):
    book.in_step(source(why=2, silence=3))
    assert points(book) == {"why": (1.5, 2.0), "silence": (None, 3.0)}
    book.in_step(source(why=4, silence=3))
    assert points(book) == {"why": (1.5, 4.0), "silence": (None, 3.0)}


def test_a_question_with_points_is_not_removed(book):
    with pytest.raises(UserError, match="no longer has why, for which submissions have points"):
        book.in_step(source(silence=3))
    assert points(book) == {"why": (1.5, 2.0)}
