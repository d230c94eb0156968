"""Completions shown: which ones first, the answer marked, and hostile text as text."""

from dataclasses import replace

import pytest
from scripted import PROBLEMS, right_when

from rlcourse.evaluation import evaluate_policy, telling, transcripts_table
from rlcourse.evaluation.transcripts import answer_span, with_answer_marked
from rlcourse.tasks.problem import Problem


@pytest.fixture
def evaluation():
    policy = right_when(lambda q: int(q) < 7, lambda q: int(q) % 5)
    return evaluate_policy(policy, PROBLEMS, samples=4)


def test_a_table_marks_right_and_wrong_and_escapes_everything(evaluation):
    hostile = Problem("<b>1</b>", "#### 1")
    html = transcripts_table(right_when(lambda q: False), problems=[hostile])._repr_html_()
    assert "<b>1" not in html and "&lt;b&gt;1&lt;/b&gt;" in html
    table = transcripts_table(evaluation, evaluation, count=4)
    assert table._repr_html_().count("✓") + table._repr_html_().count("✗") == 8
    assert "before" in str(table) and "after" in str(table)


def test_prices_are_no_formula_to_jupyterlab(evaluation):
    priced = Problem("At $2 each, what do $9 buy?", "#### 4")
    html = transcripts_table(right_when(lambda q: False), problems=[priced])._repr_html_()
    assert "$2" not in html and "<span>$</span>2 each" in html


def test_problems_whose_outcome_changed_are_shown_first(evaluation):
    def column(outcomes):
        return [
            replace(t, greedy=replace(t.greedy, correct=o == "1"))
            for t, o in zip(evaluation.transcripts, outcomes, strict=True)
        ]

    chosen = telling(column("0000011111"), column("1110010111"), count=8)
    assert chosen[:3] == [0, 1, 2]  # gained
    assert set(chosen[3:5]) == {6, 3}  # lost, still wrong
    assert len(chosen) == len(set(chosen)) == 8


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
