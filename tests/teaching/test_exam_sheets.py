"""Exam sheets: points add up, solutions are only in their own sheet, no question is in the bank."""

import pytest

from rlcourse.courses import shipped
from rlcourse.errors import UserError
from rlcourse.teaching.exams import sheets
from rlcourse.teaching.quiz import bank

COURSE = shipped()


def test_sheets_come_without_and_with_solutions():
    found = {name: text for name, _, text in sheets(COURSE.directory / "teaching" / "exams")}
    assert set(found) == {
        *("exam-midterm", "exam-midterm-solutions", "exam-final", "exam-final-solutions")
    }
    for name, text in found.items():
        assert ("### Solution" in text) == name.endswith("solutions")
    stems = {quiz.stem for lesson in COURSE.lessons for quiz in bank(lesson)}
    assert not any(stem in text for stem in stems for text in found.values())


def test_points_that_do_not_add_up_are_named(tmp_path):
    (tmp_path / "a.md").write_text("# A (60 minutes, 3 points)\n\n## 1. B (2 points)\n")
    with pytest.raises(UserError, match="have 2 points"):
        sheets(tmp_path)
