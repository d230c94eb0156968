"""Lesson 13: its worked numbers, and what the weights are derivatives of."""

from math import comb

import pytest
import torch

from rlcourse import algorithms as A


def test_the_two_models_of_section_1_cross():
    first = A.pass_at_k_curve(torch.full((100,), 20), 100, (1, 16))
    second = A.pass_at_k_curve(torch.tensor([75] * 40 + [0] * 60), 100, (1, 16))
    assert first.mean(0).tolist() == pytest.approx([0.2, 0.98], abs=0.01)
    assert second.mean(0).tolist() == pytest.approx([0.3, 0.4], abs=1e-6)
    few = A.pass_at_k_curve(torch.tensor([0, 2, 6]), 8, (1, 4))
    assert few.flatten().tolist() == pytest.approx([0, 0, 0.25, 0.786, 0.75, 1], abs=5e-4)


@pytest.mark.parametrize("size", [2, 5, 8])
def test_maxrl_climbs_the_first_terms_of_the_logarithm(size):
    """The stretch exercise: weight = d/dz of −Σ (1 − p)^k / k, k < G."""
    z = torch.linspace(-4, 4, 9, dtype=torch.float64, requires_grad=True)
    p = z.sigmoid()
    terms = -sum((1 - p) ** k / k for k in range(1, size))
    (slope,) = torch.autograd.grad(terms.sum(), z)
    weight = A.difficulty_weight(p.detach(), size, "maxrl")
    torch.testing.assert_close(weight, slope)
    torch.testing.assert_close(weight, ((1 - p) - (1 - p) ** size).detach())


@pytest.mark.parametrize("method", ["mean", "std"])
def test_the_weight_is_that_of_the_trainers_own_advantages(method):
    """Exactly, over the numbers of right ones that a group of five can have."""
    estimator = {"mean": A.group_mean_advantages, "std": A.group_normalized_advantages}[method]
    p, size, expected = 0.3, 5, 0.0
    for right in range(size + 1):
        rewards = torch.tensor([1.0] * right + [0.0] * (size - right), dtype=torch.float64)
        chance = comb(size, right) * p**right * (1 - p) ** (size - right)
        expected += chance * (estimator(rewards, size) * rewards).mean().item()
    found = A.difficulty_weight(torch.tensor([p], dtype=torch.float64), size, method)
    assert found.item() == pytest.approx(expected, rel=1e-3)  # GRPO's ε of 1e-4


def test_the_line_of_section_5():
    entropy = torch.tensor([2.0, 1.5, 1.0]).double().log()
    a, b = A.fit_entropy_reward(entropy, torch.tensor([0.2, 0.5, 0.6]))
    assert (a, b) == pytest.approx((0.4, 1.0333), abs=1e-4)


def test_the_rewards_of_section_3():
    assert A.majority_reward(["14", "18", "14", None], 4).tolist() == [1, 0, 1, 0]
