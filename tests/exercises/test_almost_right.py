"""Numbers that are almost right are said to be."""

import pytest

from rlcourse import algorithms, exercises
from rlcourse.checks.asking.calling import call_all, describe
from rlcourse.checks.judging.exam import Exam
from rlcourse.checks.telling.diagnose import DIFFER


def small_eps(logits):
    p = logits.softmax(-1)
    return -(p * (p + 1e-3).log()).sum(-1)


def five_percent(logits):
    spread = 1 + 0.05 * logits.detach().mean(-1).cos()
    return spread * algorithms.token_entropy(logits)


@pytest.mark.parametrize(("answer", "almost"), [(small_eps, True), (five_percent, False)])
def test_what_is_almost_right_is_said_to_be(answer, almost):
    exam = Exam(exercises.get("token_entropy"), seed=7)
    result = exam.judge(describe(answer), call_all(answer, exam.cases))
    assert any("weighs little" in said for said in result.sentences) == almost
    assert (DIFFER in result.sentences) != almost
