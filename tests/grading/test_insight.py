"""The report of a class: what is counted, that nobody is named, and that nothing of it runs."""

import json
import re

import mixed_class
import pytest
from typer.testing import CliRunner

from rlcourse.cli import app
from rlcourse.courses import current
from rlcourse.grading.insight.commands import page
from rlcourse.grading.insight.graded_answers import Answer, Recorded
from rlcourse.grading.insight.summary import summarized

SIGN = "the objective, not the loss: the sign is missing"
EVIL = '<script>alert("1")</script><img src=x onerror=alert(2)>'
LINES = "def f(a):\n    b = a\n    c = b  # {}\n\n    return c"


def answer(student, exercise="f", points=0.0, state="unnamed", **more) -> Answer:
    return Answer(student, exercise, points, 4.0, state, **more)


def report(*answers, names=False, **more) -> dict:
    more = {"unread": {}, "unknown": (), **more}
    return summarized(Recorded("02_policy_gradient", answers, **more), names)


def test_named_mistakes_are_counted_by_name_and_unnamed_ones_by_what_they_give():
    found = report(
        *(answer(s, state="named", mistake=SIGN, case=(("yours", s),)) for s in "abc"),
        *(answer(s, case=(("yours", "1"),), code=f"return {s}") for s in "de"),
        answer("f", case=(("yours", "2"),)),
    )
    (exercise,) = found["exercises"]
    assert exercise["counts"] == {"named": 3, "unnamed": 3}
    named, first, second = exercise["mistakes"]
    assert (named["name"], named["answers"], named["points_lost"]) == (SIGN, 3, 12.0)
    assert (first["answers"], second["answers"]) == (2, 1)
    assert [way["code"] for way in first["codes"]] == ["return d", "return e"]
    assert found["five_minutes"] == [named, first, second]


def test_what_follows_from_a_wrong_function_is_no_mistake_of_its_own():
    found = report(
        answer("a", state="raises", because=("g",)),
        answer("b", points=4.0, state="right", once=("g",)),
        answer("c", state="named", mistake=SIGN, because=("g",)),
    )
    (exercise,) = found["exercises"]
    assert exercise["counts"] == {"right": 1, "named": 1, "follows": 1}
    assert exercise["uses_wrong"] == {"g": 1} and exercise["right_once_another_is"] == 1
    assert [mistake["name"] for mistake in found["five_minutes"]] == [SIGN]


def test_code_is_shown_without_comments_and_nothing_of_it_is_lost():
    quoted = "def f(a):\n    b = '#1'\n    c = '#2'\n    return c"
    assert answer("a", code=quoted).text == quoted
    assert (
        answer("a", code=LINES.format("mine")).text == LINES.partition("  #")[0] + "\n    return c"
    )


@pytest.mark.parametrize("names", [False, True])
def test_code_that_passed_or_was_not_judged_is_on_no_page(names):
    found = report(
        *(answer(s, points=4.0, state="right", code=LINES.format(s)) for s in "ab"),
        answer("c", "g", state="other", code=LINES.replace("f(", "g(")),
        names=names,
    )
    text = page(found, current(), {})
    assert "def f(" not in text and "def g(" not in text


def everything_evil(student: str, names: bool = False) -> dict:
    made = {
        "mistake": EVIL, "sentences": (EVIL,), "heading": EVIL, "case": ((EVIL, EVIL),),
        "code": f"def f():\n    1\n    2\n    return '{EVIL}'",
    }  # fmt: skip
    answers = [
        answer(f"{student}{i}", EVIL, state=state, **made)
        for state in ("named", "unnamed", "raises", "syntax error", "timed out")
        for i in "12"
    ]
    more = {"unread": {student: EVIL}, "unknown": (student,), "questions": {EVIL: (1, 2)}}
    return report(*answers, names=names, absent=(student,), **more)


@pytest.mark.parametrize("names", [False, True])
def test_nothing_that_anybody_wrote_becomes_a_part_of_the_page(names):
    text = page(everything_evil("mallory", names), current(), {})
    assert not re.search(r"<(script|img|iframe|link)\b", text)
    assert "&lt;script&gt;" in text
    assert ("mallory" in text) == names


# A class that was graded


@pytest.fixture
def course(mixed):
    return mixed[0]


def said(*words: str) -> str:
    result = CliRunner().invoke(app, ["insight", "02", *words])
    assert result.exit_code == 0, result.output
    return result.output


@pytest.mark.slow
def test_the_whole_report_of_a_class(course, tmp_path):
    found = json.loads(said("--course", str(course), "--json"))
    loss = found["exercises"][0]
    assert loss["exercise"] == "reinforce_loss"
    counts = {"right": 1, "named": 2, "unnamed": 3, "raises": 1, "syntax": 1, "blank": 1}
    assert loss["counts"] == {**counts, "other": 2}
    assert found["five_minutes"][0]["name"] == SIGN and found["could_not_be_graded"] == 1
    step = next(e for e in found["exercises"] if e["exercise"] == "reinforce_step")
    assert step["right_once_another_is"] == 9
    assert found["questions"] == {"applause": {"answered": 10, "blank": 1}}
    assert not set(mixed_class.ANSWERS) & set(re.findall(r"\w+", json.dumps(found)))
    out = tmp_path / "page.html"
    assert said("--course", str(course), "--out", str(out)).strip() == str(out)
    said("--course", str(course), "--out", str(tmp_path / "names.html"), "--names")
    assert (tmp_path / "names.html").stat().st_mode & 0o777 == 0o600
    text = out.read_text()
    assert SIGN in text and "<script" not in text
