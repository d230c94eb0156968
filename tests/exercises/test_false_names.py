"""A wrong name is worse than none, and a verdict is the same for every drawing of the cases."""

import pytest
import torch

from rlcourse import check, exercises
from rlcourse.checks.asking.calling import call_all, describe
from rlcourse.checks.asking.case import Case
from rlcourse.checks.judging.exam import Exam
from rlcourse.checks.telling.patterns import Pair, explain


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("RLCOURSE_HOME", str(tmp_path))


def judged(name, fn, seeds):
    """Results of one answer on several drawings, visible and hidden in turn."""
    for seed in range(seeds):
        exam = Exam(exercises.get(name), 300 + seed, hidden=bool(seed % 2))
        yield exam.judge(describe(fn), call_all(fn, exam.cases))


@pytest.mark.parametrize(
    "name",
    ["whiten", "importance_weights", "kl_estimates", "kl_shaped_rewards", "returns_to_go"],
)
def test_a_turned_sign_is_called_so_and_nothing_else(name):
    reference = exercises.get(name).reference
    for result in judged(name, lambda *args, **kwargs: -reference(*args, **kwargs), 3):
        said = result.mistake or " ".join(result.sentences)
        assert "sign" in said and "as well" not in " ".join(result.sentences), result


def test_a_constant_from_ones_own_divisor_gets_no_name():
    def monte_carlo_policy_gradient(logits, rewards, samples, generator):
        probabilities = logits.softmax(0)
        actions = torch.multinomial(probabilities, samples, replacement=True, generator=generator)
        scores = torch.nn.functional.one_hot(actions, len(logits)) - probabilities
        paid = rewards[actions]
        return (paid[:, None] * scores).sum(0) / (paid != 0).sum().clamp(min=1)

    for result in judged("monte_carlo_policy_gradient", monte_carlo_policy_gradient, 6):
        assert not result.passed and result.mistake is None
        assert "times 2" not in result.message


def test_a_solver_that_never_looks_at_its_tolerance_is_no_exact_solution():
    def conjugate_gradient(matvec, b, iterations=10, tolerance=1e-10):
        x, residual = torch.zeros_like(b), b.clone()
        direction = residual.clone()
        for _ in range(iterations):
            squared, image = residual @ residual, matvec(direction)
            if squared == 0:
                break
            step = squared / (direction @ image)
            x, residual = x + step * direction, residual - step * image
            direction = residual + (residual @ residual) / squared * direction
        return x

    for result in judged("conjugate_gradient", conjugate_gradient, 8):
        assert "exact solution" not in (result.mistake or "")


def test_what_is_right_on_other_cases_is_not_always_0():
    def informative_groups(rewards, group_size):
        return rewards.reshape(-1, group_size).std(1, correction=0) > 1e-3

    for result in judged("informative_groups", informative_groups, 3):
        assert not result.passed and "always 0" not in result.message


def test_a_factor_seen_in_one_result_only_is_no_regularity():
    x = torch.tensor(2.0, dtype=torch.float64)
    wrong = Pair(Case("once", {"x": x}), x, 0.241767 * x)
    again = Pair(Case("once more", {"x": x}), x, 0.241767 * x)
    assert explain([wrong, again], [], "Your result", "the expected one") is None
    right = Pair(Case("right", {"x": 3 * x}), 3 * x, 3 * x)
    double = Pair(Case("once", {"x": x}), x, 2 * x)
    assert explain([double], [right], "Your result", "the expected one") is None
    assert "times 2" in explain([double], [], "Your result", "the expected one")


def test_a_set_has_no_order_and_its_choice_no_name():
    def majority_vote(answers):
        votes = {a for a in answers if a is not None}
        return max(sorted(votes, key=lambda a: a[::-1]), key=answers.count, default=None)

    result = check(majority_vote, seed=0)
    assert not result.passed and "tied" not in (result.mistake or "")
