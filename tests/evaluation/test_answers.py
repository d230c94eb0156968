"""The number that was read from a completion is the one that is marked in it."""

import pytest

from rlcourse.evaluation.answers import answer_span, with_answer_marked


@pytest.mark.parametrize(
    "text, given, marked",
    [
        ("3 + 4 = 7\n#### 7", "7", "7"),
        ("#### $1,234.00 dollars", "1234", "$1,234.00"),
        ("#### -3", "-3", "-3"),
        ("#### −3", "-3", "−3"),
        ("#### .50", "0.5", ".50"),
        ("so <answer>12</answer>", "12", "12"),
    ],
)
def test_the_answer_is_found_in_any_spelling(text, given, marked):
    start, end = answer_span(text, given)
    assert text[start:end] == marked


def test_the_first_number_after_the_last_mark_is_meant():
    text = "#### 7\n7 is 7\n#### 7 and 7"
    assert answer_span(text, "7") == (19, 20)


def test_without_a_mark_the_last_number_is_meant():
    assert answer_span("7 and 7.", "7") == (6, 7)


@pytest.mark.parametrize(
    "text, given", [("#### 7", None), ("nothing", "7"), ("#### 17", "7"), ("#### x", "x"), ("", "")]
)
def test_what_was_not_read_is_not_marked(text, given):
    assert answer_span(text, given) is None
    assert "<mark>" not in with_answer_marked(text, given)


def test_text_around_the_mark_is_escaped():
    html = with_answer_marked("<b>#### 7</b>&", "7")
    assert html == "&lt;b&gt;#### <mark>7</mark>&lt;/b&gt;&amp;"
