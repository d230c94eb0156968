"""A repair points to one line of the student's code, and is said only if it was tried."""

import functools
from pathlib import Path

import pytest
import torch
from torch.nn import functional as F

from rlcourse import check, exercises
from rlcourse.checks.judging.exam import Exam
from rlcourse.checks.telling.repair import repair


def along_the_positions(logits):
    logp = F.log_softmax(logits, dim=-1)
    return -(logp.exp() * logp).sum(1)


def above_one_only(verdicts, false_positive, false_negative):
    fp, fn = false_positive, false_negative
    if fp + fn > 1:
        raise ValueError("no better than a coin")
    return (verdicts - fp) / (1 - fp - fn + 1e-12)


def by_a_wrong_helper(rewards, score_norms_squared):
    bottom = score_norms_squared.sum()
    top = added_up(rewards, score_norms_squared)
    return torch.where(bottom == 0, torch.zeros_like(top), top / bottom)


def added_up(rewards, norms):
    return (rewards + norms).sum()


CASES = (
    ("token_entropy", along_the_positions, "return -(logp.exp() * logp).sum(1)"),
    ("unbiased_rewards", above_one_only, "if fp + fn > 1:"),
    ("optimal_baseline", by_a_wrong_helper, "return (rewards + norms).sum()"),
)


def exam(name: str) -> Exam:
    return Exam(exercises.get(name), 0)


@pytest.mark.parametrize("name, wrong, line", CASES)
def test_the_line_of_the_only_repair_is_told(name, wrong, line):
    found = repair(wrong, exam(name))
    assert found.line == line
    text = Path(__file__).read_text("utf-8").splitlines()
    assert text[found.line_number - 1].strip() == line


def test_a_check_says_it_in_place_of_values_that_differ(tmp_path, monkeypatch):
    monkeypatch.setenv("RLCOURSE_HOME", str(tmp_path))
    said = check(along_the_positions, exercise="token_entropy", seed=0).message
    assert "With one change in one line, all" in said
    assert "of along_the_positions: `return -(logp.exp() * logp).sum(1)`" in said
    assert "The values differ" not in said


def test_a_right_function_needs_no_repair():
    assert repair(exercises.get("token_entropy").reference, exam("token_entropy")) is None


def test_functions_with_a_check_of_their_own_are_left_alone():
    assert repair(by_a_wrong_helper, exam("optimal_baseline"), ("added_up",)) is None


def test_what_is_wrong_outside_of_the_text_is_not_looked_for_in_it():
    right = exercises.get("token_entropy").reference

    @functools.wraps(right)
    def halved(logits):
        return right(logits) / 2

    assert repair(halved, exam("token_entropy")) is None


@pytest.mark.parametrize("fn", [torch.sum, functools.partial(along_the_positions), lambda x: x])
def test_a_function_without_a_text_of_its_own_is_not_changed(fn):
    assert repair(fn, exam("token_entropy")) is None
