"""Lesson 03: what it claims about noise, by enumeration."""

import pytest
import torch

from rlcourse import algorithms as A
from rlcourse.policy.toy import ToyPolicy

PI, REWARDS = torch.tensor([0.5, 0.3, 0.2]).double(), torch.tensor([0.0, 1.0, 0.0]).double()
SCORES = torch.stack([A.score_function(PI.log(), action) for action in range(3)])


def variance(b):
    """Exact variance of one sample's gradient of the bandit with a constant baseline."""
    exact = A.exact_policy_gradient(PI.log(), REWARDS)
    second = (PI * (REWARDS - b) ** 2 * SCORES.square().sum(1)).sum()
    return float(second - exact.square().sum())


@pytest.mark.parametrize("b", [0.0, 0.3, 100.0])
def test_any_constant_leaves_the_expected_gradient(b):
    expected = PI * (REWARDS - b) @ SCORES
    torch.testing.assert_close(expected, A.exact_policy_gradient(PI.log(), REWARDS))


def test_a_baseline_that_looks_at_the_answer_does_not():
    expected = PI * (REWARDS - REWARDS / 2) @ SCORES
    torch.testing.assert_close(expected, A.exact_policy_gradient(PI.log(), REWARDS) / 2)


def test_mean_reward_halves_the_noise_of_the_bandit_and_a_shift_multiplies_it():
    assert variance(0.3) / variance(0.0) == pytest.approx(0.48, abs=0.01)
    assert variance(2.0) / variance(0.0) == pytest.approx(10, abs=1)
    assert variance(-4.0) / variance(0.0) == pytest.approx(73, abs=1)


def test_no_constant_is_quieter_than_the_optimal_baseline():
    best = A.optimal_baseline(REWARDS, PI * SCORES.square().sum(1)).item()
    assert best == pytest.approx(0.377, abs=5e-4)
    assert all(variance(best) < variance(best + step) for step in (-0.1, -0.01, 0.01, 0.1))


@pytest.mark.parametrize("group_size", [2, 3])
def test_group_mean_shortens_the_expected_gradient_and_leave_one_out_does_not(group_size):
    toy = ToyPolicy(vocab_size=3, length=2, seed=1, eos_id=0)
    sentences, p = toy.trajectories(), toy.probabilities().detach()
    rewards = ((sentences.tokens == 2) & sentences.mask).sum(1).double()
    (exact,) = torch.autograd.grad(toy.expected_reward(rewards), [toy.logits])
    groups = torch.cartesian_prod(*[torch.arange(len(p))] * group_size)
    weights = len(groups) * p[groups].prod(1).repeat_interleave(group_size)
    rows = sentences.rows(groups.flatten())
    for estimator, factor in (
        (A.group_mean_advantages, (group_size - 1) / group_size),
        (A.leave_one_out_advantages, 1.0),
    ):
        advantages = estimator(rewards[groups.flatten()], group_size)
        loss = A.reinforce_loss(toy.logprobs(rows), weights * advantages, rows.mask)
        (gradient,) = torch.autograd.grad(loss, [toy.logits])
        torch.testing.assert_close(-gradient, factor * exact)
