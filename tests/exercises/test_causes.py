"""Why an answer raised: the sentence is true of the code, and silent where nothing is certain."""

# ruff: noqa: F821, F841 (the mistakes that are to be explained)

import pytest
import torch

from rlcourse import check, exercises
from rlcourse.checks.asking.calling import call, describe
from rlcourse.checks.asking.case import Case
from rlcourse.checks.judging.exam import Exam

NAMES = {"plus": 1}
NO_VALUE = "`scale` is a name of this function, and has no value when this line is reached."


def grid(rows, columns):
    return torch.arange(1.0, rows * columns + 1).reshape(rows, columns)


def cause(fn, **arguments):
    outcome = call(fn, Case("", {"x": grid(4, 6), "a": torch.ones(4), "dim": None, **arguments}))
    assert outcome.error is not None
    return outcome.error.cause


def unset_below(x, a, dim):
    y = x * scale
    scale = 2
    return y


def unset_typo(x, a, dim):
    advantage = a
    return x * advantge


def own_error(x, a, dim):
    if x.ndim == 2:
        raise ValueError("I want a vector")


def in_a_helper(x, a, dim):
    def helper(rows):
        return rows * a

    return helper(x)


@pytest.mark.parametrize(
    ("fn", "said"),
    [
        # rows against columns
        (lambda x, a, dim: x * a, "`x` is (4, 6) and `a` is (4,): one number for each row. "
         "`a[:, None]` makes it a column."),
        (in_a_helper, "`rows` is (4, 6) and `a` is (4,): one number for each row. "
         "`a[:, None]` makes it a column."),
        (lambda x, a, dim: [x + a for a in (torch.ones(5),)], "`x` is (4, 6) and `a` is (5,)."),
        # names
        (unset_below, NO_VALUE),
        (unset_typo, "Nothing is called `advantge` here: is `advantage` meant?"),
        # what something is
        (lambda x, a, dim: dim.bool(), "`dim` is None, which has no `bool`."),
        (lambda x, a, dim: x.sofmax(-1), "`x` is a tensor, which has no `sofmax`: "
         "is `softmax` meant?"),
        (lambda x, a, dim: torch.sofmax(x), "`torch` has nothing called `sofmax`: "
         "is `softmax` meant?"),
        (lambda x, a, dim: x + dim, "`x` is (4, 6) and `dim` is None."),
        (lambda x, a, dim: dim[0], "`dim` is None."),
        (lambda x, a, dim: float(x), "`x` is (4, 6)."),
        (lambda x, a, dim: [x[i] for i in range(5)], "`x` is (4, 6) and `i` is 4."),
        (lambda x, a, dim: x[a], "`x` is (4, 6) of float32 and `a` is (4,) of float32."),
        (lambda x, a, dim: NAMES["minus"], "`NAMES` has no such key: its keys are 'plus'."),
        (lambda x, a, dim: -(x > 0), "`x` is (4, 6) of float32."),
        (own_error, "Your own `raise` stops it, on arguments that are allowed."),
    ],
)  # fmt: skip
def test_the_cause_is_what_the_code_shows(fn, said):
    assert cause(fn) == said


def test_nothing_is_said_of_a_callers_operands_where_the_callee_failed():
    """The division stands in a function of the library: its divisor is not the argument."""
    assert cause(lambda x, a, dim: sorted(a.tolist(), key=dim.missing)).startswith("`dim` is None")
    assert cause(lambda x, a, dim: sorted([2, "b"])) == ""
    assert cause(lambda x, a, dim: max([], key=len)) == ""


def test_an_object_that_cannot_be_described_ends_no_check():
    class Odd:
        def __getattr__(self, name):
            raise RuntimeError

    assert cause(lambda x, a, dim: dim + 1, dim=Odd()) in ("", "`dim` is an Odd.")


def sft_loss(logprobs, mask):
    lengths = mask.sum(1)
    return -(logprobs * mask / lengths).sum() / len(mask)


def test_a_student_reads_the_line_and_what_its_names_hold():
    message = check(sft_loss, seed=0).message
    assert "`return -(logprobs * mask / lengths).sum() / len(mask)`" in message
    assert "`lengths[:, None]` makes it a column" in message


def hidden(logprobs, mask):
    return logprobs.missing


def test_no_hidden_case_is_shown_by_the_cause():
    exam = Exam(exercises.get("sft_loss"), 3, hidden=True)
    result = exam.judge(describe(hidden), [call(hidden, case) for case in exam.cases])
    assert "tensor of shape" not in str(result)
