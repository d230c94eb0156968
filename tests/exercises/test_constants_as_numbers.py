"""Good code for a constant loses nothing, although gradients are asked for every argument."""

import copy

import pytest
import torch

from rlcourse.checks.asking import wire
from rlcourse.checks.asking.calling import Outcome, call, call_all, describe
from rlcourse.checks.asking.case import Case
from rlcourse.checks.judging.comparing import compare_anything
from rlcourse.checks.judging.exam import Exam
from rlcourse.exercises import get
from rlcourse.grading.running.answers import AnswersSoFar

LOSS = get("reinforce_loss")


def by_numpy(logprobs, advantages, mask):
    weights = torch.from_numpy(advantages.numpy().copy())
    kept = logprobs.masked_fill(~mask.bool(), 0).sum(dim=1)
    return -(weights * kept).mean()


def by_copy(logprobs, advantages, mask):
    return LOSS.reference(logprobs, copy.deepcopy(advantages), mask)


def of_the_policy(logprobs, advantages, mask):
    kept = torch.from_numpy(logprobs.numpy())
    return LOSS.reference(kept, advantages, mask)


def graded(fn):
    """The verdict from outside: questions that name no constant, answers over the pipe."""
    exam = Exam(LOSS, 0, hidden=True)
    answers = AnswersSoFar(len(exam.cases))
    answers.add({"facts": describe(fn)})
    for case in exam.cases:
        said = {"outcome": call(fn, case.question())}
        answers.add(wire.loads(wire.dumps(said)))
    told = answers.answer(None)
    return exam.judge(told.facts, list(told.outcomes))


@pytest.mark.parametrize("fn", [by_numpy, by_copy])
def test_a_constant_may_become_numbers(fn):
    exam = Exam(LOSS, 0)
    seen = exam.judge(describe(fn), [call(fn, case) for case in exam.cases])
    assert seen.passed, str(seen)
    assert graded(fn).points == LOSS.points


def test_what_is_trained_may_not_and_the_error_says_so():
    result = graded(of_the_policy)
    assert not result.passed and result.points == 0
    assert "numpy knows no gradient" in str(result) and "logprobs.numpy()" in str(result)


def test_a_refusal_that_is_none_is_no_answer():
    for forged in ({"x": None}, {"x": 1}, [1]):
        answers = AnswersSoFar(1)
        answers.add({"facts": describe(by_numpy)})
        with pytest.raises(wire.BrokenMessage):
            answers.add({"case": 0, "outcome": Outcome(refused=forged)})


@pytest.mark.parametrize("seed", [101, 124])
def test_a_constant_rounded_to_float32_is_no_mistake(seed):
    """`torch.where(a > 0, 1.2, 0.8)`: on these draws a mean cancels to a hundredth of its terms."""
    by_sign = next(fn for fn in get("ppo_clip_loss").alternatives if fn.__name__ == "by_sign")
    for hidden in (False, True):
        exam = Exam(get("ppo_clip_loss"), seed, hidden)
        assert exam.judge(describe(by_sign), call_all(by_sign, exam.cases, False)).passed


@pytest.mark.parametrize("size, same", [(1.0, False), (5e4, True)])
def test_what_is_left_where_large_terms_cancel_is_no_gradient(size, same):
    case = Case("", {"x": torch.zeros(2).double()}, differentiable=("x",))
    none, rest = (
        Outcome(torch.tensor(size).double(), {"x": torch.full((2,), slope).double()})
        for slope in (0.0, 1e-11)
    )
    assert (not compare_anything(none, rest, case)) is same
