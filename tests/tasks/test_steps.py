"""The program that checks steps: what it pays, and what it does not."""

import pytest

from rlcourse.tasks import load_task
from rlcourse.tasks.steps import prefixes, step_verdicts, verdict_table

SOLUTION = "3 * 4 = 12\n5 + 2 = 7\n12 - 7 = 5\n#### 5"


@pytest.mark.parametrize(
    "text, verdicts",
    [
        (SOLUTION, [1, 1, 1, 1]),
        ("5 + 2 = 7\n3 * 4 = 12\n12 - 7 = 5\n#### 5", [1, 1, 1, 1]),  # in another order
        ("4 * 3 = 12\n2 + 5 = 7\n12 - 7 = 5\n#### 5", [1, 1, 1, 1]),  # a product turned round
        ("3 * 4 = 12\n5 + 2 = 7\n7 - 12 = 5\n#### 5", [1, 1, 0, 1]),  # a difference turned round
        ("3 * 4 = 12\n3 * 4 = 12\n4 * 3 = 12", [1, 0, 0]),  # once each
        ("3 + 4 = 7\n#### 7", [0, 0]),  # true, and not of this solution
        ("3 * 4 = 13\n#### 5\n#### 5", [0, 1, 0]),
        ("#### 5.0", [1]),
        ("Answer: 5", [0]),
        ("5", [0]),
        ("", [0]),
        ("3 * 4 = 12\n", [1, 0]),
        ("3 * 4 = 12 #### 5", [0]),
    ],
)
def test_what_a_line_is_paid(text, verdicts):
    assert step_verdicts(text, SOLUTION) == verdicts


def test_equal_calculations_of_a_solution_are_paid_as_often_as_it_has_them():
    solution = "2 + 3 = 5\n3 + 2 = 5\n5 + 5 = 10\n#### 10"
    assert step_verdicts("2 + 3 = 5\n2 + 3 = 5\n2 + 3 = 5", solution) == [1, 1, 0]


@pytest.mark.parametrize("level", ["easy", "default", "hard"])
def test_every_line_of_every_solution_is_right(level):
    for problem in load_task("word_problems", seed=0, level=level).train[:300]:
        assert min(step_verdicts(problem.answer, problem.answer)) == 1


def test_a_table_has_a_row_for_each_text_and_zeros_behind_its_end():
    table = verdict_table([SOLUTION, "#### 5"], [SOLUTION, SOLUTION])
    assert table.tolist() == [[1, 1, 1, 1], [1, 0, 0, 0]]
    assert verdict_table([], []).shape == (0,)


def test_prefixes_stand_before_each_line():
    assert prefixes("a\nb\n#### c") == ["", "a\n", "a\nb\n"]
    assert prefixes("#### c") == [""]
