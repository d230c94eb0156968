"""Counts and tables in prose are filled in, and a place that nothing fills is named."""

from dataclasses import replace

import pytest
from fixture_course import declare
from small_courses import write_course

from rlcourse import exercises, published
from rlcourse.authoring.filling import LessonFacts, Unfilled, filled_pages, lesson_table, links
from rlcourse.courses import current, shipped
from rlcourse.errors import UserError


@pytest.fixture
def facts():
    tests = replace(declare("score_function"), name="a_test", suspects=object(), points=1.5)
    return LessonFacts([declare("reinforce_loss", points=3), tests], {"why": 2.0, "how": 3.0})


@pytest.mark.parametrize(
    ("text", "filled"),
    [
        ("{{ Functions }}, {{ points }}.", "One function and one test, 4.5 points."),
        ("{{ functions: a_test }} for {{ points: a_test }}", "one test for 1.5 points"),
        ("{{ questions }}, {{ question_points }}", "two questions for 5 points, 5 points"),
        ("{{ questions: why }}, {{ question_points: how }}", "one question for 2 points, 3 points"),
        ("$x^{{2}}$ and {{x}} are left", "$x^{{2}}$ and {{x}} are left"),
        ("{{ others }}", "from the course"),
    ],
)
def test_places_are_filled(facts, text, filled):
    assert facts.fill(text, {"others": lambda: "from the course"}) == filled


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{{ pionts }}", "nothing fills {{ pionts }}"),
        ("{{ points: nobody }}", "no exercise nobody"),
        ("{{ question_points: nobody }}", "no question nobody"),
    ],
)
def test_a_place_that_nothing_fills_is_named(facts, text, said):
    with pytest.raises(Unfilled, match=said.replace("{", r"\{")):
        facts.fill(text, {})


def test_a_course_lists_its_own_lessons_in_its_own_order(tmp_path):
    names = ("00_start_here", "06_grpo", "02_policy_gradient")
    table = lesson_table(current(write_course(tmp_path / "course", dict.fromkeys(names))))
    assert [row[:4] for row in table.splitlines()[2:]] == ["| 06", "| 02"]


def test_a_readme_leads_to_the_site_and_to_colab_only_where_they_are(monkeypatch):
    monkeypatch.setattr(published, "REPOSITORY", "")
    assert "http" not in links(shipped()) and "make site" in links(shipped())
    monkeypatch.setattr(published, "REPOSITORY", "https://github.com/someone/theirs")
    said = links(shipped())
    assert "(https://someone.github.io/theirs/)" in said and "/theirs/run.html)" in said
    assert "colab.research.google.com/github/someone/theirs/blob/main/notebooks/00_" in said


def test_a_page_gets_the_course_s_counts_between_its_comments(tmp_path):
    page = tmp_path / "README.md"
    page.write_text("<!-- exercise_count -->7<!-- /exercise_count --> exercises")
    course = replace(shipped(), pages=(page,))
    count = len(exercises.names(course))
    assert f"-->{count}<!--" in filled_pages(course, exercises.all(course, contests=True))[page]
    page.write_text("<!-- nothing -->7<!-- /nothing -->")
    with pytest.raises(UserError, match="nothing fills <!-- nothing -->"):
        filled_pages(course, exercises.all(course, contests=True))
