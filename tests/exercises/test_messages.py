"""A verdict says what was seen: every sentence of it is held against the code that it speaks of."""

from dataclasses import replace

import pytest
import torch
from shared import as_written

from rlcourse import algorithms, check, exercises
from rlcourse.checks.asking.calling import Failure, Outcome, call, describe
from rlcourse.checks.judging.exam import Exam

RIGHT_SFT, RIGHT_GRPO = map(as_written, (algorithms.sft_loss, algorithms.grpo_loss))


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("RLCOURSE_HOME", str(tmp_path))


def test_a_breakpoint_left_in_is_named_and_nobody_waits_for_it():
    def sft_loss(logprobs, mask):
        breakpoint()
        return -(logprobs * mask).sum() / mask.sum()

    message = check(sft_loss, seed=0).message
    assert "a breakpoint is left in" in message and ": `breakpoint()" in message


def with_a_factor(applies):
    def sft_loss(logprobs, mask):
        loss = RIGHT_SFT(logprobs, mask)
        return 1.1 * loss + 0.01 * loss.detach().cos() if applies(logprobs, mask) else loss

    return sft_loss


def test_a_place_is_named_where_the_other_side_of_it_is_right():
    message = check(with_a_factor(lambda x, mask: not mask.all()), seed=0).message
    assert "wrong only where there is padding" in message and "come out right" in message


def grpo_step(policy, optimizer, rollouts, num_iterations, clip=0.2, beta=0.04, max_grad_norm=1.0):
    """The gradients are cleared once, before the loop."""
    losses = []
    optimizer.zero_grad()
    for _ in range(num_iterations):
        loss = RIGHT_GRPO(
            policy.logprobs(rollouts), rollouts.old_logprobs, rollouts.ref_logprobs,
            rollouts.advantages, rollouts.mask, clip, beta,
        )  # fmt: skip
        loss.backward()
        torch.nn.utils.clip_grad_norm_(policy.parameters(), max_grad_norm)
        optimizer.step()
        losses.append(loss.item())
    return losses


def test_a_step_function_is_shown_the_first_update_that_differs():
    result = check(grpo_step, seed=0)
    assert "Update 1 agrees, update 2 does not" in result.message
    assert "optimizer.step finds, expected" in result.message
    assert result.example.case.arguments["num_iterations"] == 2


def test_what_a_function_never_reads_is_said_of_a_call_that_ended():
    def sft_loss(logprobs, mask):
        return 0.37 * logprobs.max().sin() - 0.21 * logprobs.sum().cos()

    def with_a_loop(logprobs, mask):
        while logprobs.numel() > 1:
            pass
        return -logprobs.mean()

    def raises(logprobs, mask):
        raise KeyError("nothing")

    said = "Your function never reads `mask`."
    assert said in check(sft_loss, seed=0).message
    exam = Exam(exercises.get("sft_loss"), seed=0)
    late = Outcome(error=Failure("TimeoutError", "the function ran too long"))
    lost = Outcome(error=Failure("NoAnswer", "the process ended before this case was answered"))
    for fn, outcome in ((with_a_loop, late), (with_a_loop, lost), (raises, None)):
        outcomes = [outcome or call(fn, case) for case in exam.cases]
        assert said not in (message := exam.judge(describe(fn), outcomes).message)
        assert "TimeoutError" not in message and "NoAnswer" not in message


def test_a_call_that_did_not_finish_raised_nothing():
    exam = Exam(exercises.get("sft_loss"), seed=0)
    right = [call(algorithms.sft_loss, case) for case in exam.cases]
    for failure, words in (
        (Failure("TimeoutError", "the function ran too long"), "t did not end in time"),
        (Failure("NoAnswer", "the process ended"), "ts process ended before it had answered"),
        (Failure("TimeoutError", "mine", 1, "raise TimeoutError", "f"), "t raises TimeoutError"),
    ):
        facts, unfinished = describe(algorithms.sft_loss), Outcome(error=failure)
        message = exam.judge(facts, [*right[:-1], unfinished]).message
        assert f"I{words} on the case" in message
        wrong = [replace(o, value=o.value + 1 if o.error is None else None) for o in right[:-1]]
        assert f"Also, i{words} on the case" in exam.judge(facts, [*wrong, unfinished]).message
