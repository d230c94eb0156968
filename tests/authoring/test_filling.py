"""Counts and tables in prose are filled in, and a place that nothing fills is named."""

from dataclasses import replace

import pytest
from fixture_course import declare
from small_courses import write_course

from rlcourse import exercises
from rlcourse.authoring.filling import Unfilled, fill, filled_pages, lesson_table
from rlcourse.courses import current, shipped
from rlcourse.errors import UserError


def filled_in(text):
    a_test = replace(declare("score_function"), name="a_test", suspects=object(), points=1.5)
    known = {"reinforce_loss": declare("reinforce_loss", points=3), "a_test": a_test}
    return fill(text, known, {"why": 2.0, "how": 3.0}, shipped())


@pytest.mark.parametrize(
    ("text", "filled"),
    [
        ("{{ Functions }}, {{ points }}.", "One function and one test, 4.5 points."),
        ("{{ functions: a_test }} for {{ points: a_test }}", "one test for 1.5 points"),
        ("{{ questions }}, {{ question_points }}", "two questions for 5 points, 5 points"),
        ("{{ questions: why }}, {{ question_points: how }}", "one question for 2 points, 3 points"),
        ("$x^{{2}}$ and {{x}} are left", "$x^{{2}}$ and {{x}} are left"),
    ],
)
def test_places_are_filled(text, filled):
    assert filled_in(text) == filled


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{{ pionts }}", "nothing fills {{ pionts }}"),
        ("{{ points: nobody }}", "no exercise nobody"),
        ("{{ question_points: nobody }}", "no question nobody"),
    ],
)
def test_a_place_that_nothing_fills_is_named(text, said):
    with pytest.raises(Unfilled, match=said.replace("{", r"\{")):
        filled_in(text)


def test_a_course_lists_its_own_lessons_in_its_own_order(tmp_path):
    names = ("00_start_here", "06_grpo", "02_policy_gradient")
    table = lesson_table(current(write_course(tmp_path / "course", dict.fromkeys(names))))
    assert [row[:4] for row in table.splitlines()[2:]] == ["| 06", "| 02"]


def test_a_page_gets_the_course_s_counts_between_its_comments(tmp_path):
    page = tmp_path / "README.md"
    page.write_text("<!-- exercise_count -->7<!-- /exercise_count --> exercises")
    course = replace(shipped(), pages=(page,))
    count = len(exercises.names(course))
    assert f"-->{count}<!--" in filled_pages(course, exercises.all(course, contests=True))[page]
    page.write_text("<!-- nothing -->7<!-- /nothing -->")
    with pytest.raises(UserError, match="nothing fills <!-- nothing -->"):
        filled_pages(course, exercises.all(course, contests=True))
