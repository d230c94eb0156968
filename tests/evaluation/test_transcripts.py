"""Tables of completions: what is shown first, and that hostile text stays text."""

from dataclasses import replace

import pytest
from scripted import PROBLEMS, right_when

from rlcourse.evaluation import evaluate_policy, telling, transcripts_table
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
