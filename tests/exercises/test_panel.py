"""What ``progress()`` and ``hint()`` show: points, what is next, and hints to unfold."""

import re
from datetime import datetime, timedelta, timezone
from html import unescape
from zoneinfo import ZoneInfo

import pytest

from rlcourse import check, hint
from rlcourse.exercises import get
from rlcourse.student.panel import Lesson, Progress, Row


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("RLCOURSE_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("NBGRADER_EXECUTION", raising=False)
    return tmp_path / "home"


def row(name, points=2.0, score=0.0, attempts=1):
    return Row(name, points, score == 1, attempts, score)


UNTOUCHED = row("e", attempts=0)
FIRST = Lesson("01_first", "01 · First", (row("a", score=1.0), row("b", 4.0, 0.5)))
SECOND = Lesson("02_second", "02 · Second", (row("c"), row("d", score=1.0)))
THIRD = Lesson("03_third", "03 · Third", (UNTOUCHED,))


def visible(html: str) -> str:
    """Its text, and nothing of what is folded away."""
    return unescape(re.sub("<[^>]+>", "", re.sub(r"</summary>.*?</details>", "", html, flags=re.S)))


def test_points_are_summed_for_each_lesson_and_over_all():
    panel = Progress((FIRST, SECOND, THIRD))
    text = panel.text()
    assert text.startswith("2 of 5 exercises pass · 6 of 12 points\n")
    assert re.search(r"^█{6}░{4}  4 of 6 points +01 · First$", text, re.M)
    assert re.search(r"^█{5}░{5}  2 of 4 points +02 · Second$", text, re.M)
    assert plain(panel._repr_html_()).strip() == text.replace("`", "")


def test_the_exercises_of_one_lesson_are_listed():
    panel = Progress((FIRST, SECOND, THIRD), here="02_second")
    assert "  ✗ c  1 attempt, 0 of 2 points" in panel.text().splitlines()
    assert not any(re.search(r"[✓✗·] [abe]\b", line) for line in panel.text().splitlines())


@pytest.mark.parametrize(
    "lessons, here, expected",
    [
        ((FIRST, SECOND, THIRD), "", "c"),  # of the last lesson that was begun
        ((FIRST, SECOND, THIRD), "01_first", "b"),
        ((FIRST, SECOND, THIRD), "03_third", "e"),
        (
            (FIRST, Lesson("02_done", "02 · Done", (row("d", score=1.0),))),
            "02_done",
            "b",
        ),  # from the front
        ((THIRD,), "", "e"),
        ((Lesson("02_done", "02 · Done", (row("d", score=1.0),)),), "", None),
    ],
)
def test_next_is_the_first_that_does_not_pass_from_where_one_is(lessons, here, expected):
    found = Progress(lessons, here).next
    assert (found and found[1].name) == expected


@pytest.mark.parametrize(
    ("zone", "said"),
    [(ZoneInfo("Europe/Berlin"), "23:59 CEST"), (timezone(timedelta(hours=2)), "23:59 UTC+02:00")],
)
def test_due_dates_stand_beside_the_lesson_in_the_course_s_own_zone(zone, said):
    """Whatever the machine's is: a hub's is often UTC."""
    late = Lesson("01_first", "01 · First", FIRST.rows, datetime(2027, 7, 1, 23, 59, tzinfo=zone))
    assert f"due 2027-07-01 {said}\n" in Progress((late,)).text()


def plain(html: str) -> str:
    return unescape(re.sub("<[^>]+>", "", html))


def test_all_hints_are_there_to_be_unfolded_in_place():
    """Side by side in ``hint``'s output, inside each other in a failed check's."""
    hints = get("score_function").hints
    failed = check(lambda: 0, "score_function")._repr_html_()
    for html in (hint("score_function")._repr_html_(), failed):
        assert html.count("<details") == len(hints) == 3
        for words in hints:
            first_words = re.split("[`*$\n]", words)[0].strip()
            assert len(first_words) > 5 and first_words in plain(html)
    assert "<details open" not in failed and hints[1][:9] not in visible(failed)
