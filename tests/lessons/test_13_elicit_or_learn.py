"""Lesson 13: its worked numbers, what the weights are derivatives of, and its two teachers."""

from math import comb
from random import Random

import pytest
import torch

from rlcourse import algorithms as A
from rlcourse.tasks import extract_answer, load_task, word_problems


def test_the_two_models_of_section_1_cross():
    first = A.pass_at_k_curve(torch.full((100,), 20), 100, (1, 16))
    second = A.pass_at_k_curve(torch.tensor([75] * 40 + [0] * 60), 100, (1, 16))
    assert first.mean(0).tolist() == pytest.approx([0.2, 0.98], abs=0.01)
    assert second.mean(0).tolist() == pytest.approx([0.3, 0.4], abs=1e-6)
    few = A.pass_at_k_curve(torch.tensor([0, 2, 6]), 8, (1, 4))
    assert few.flatten().tolist() == pytest.approx([0, 0, 0.25, 0.786, 0.75, 1], abs=5e-4)


def test_the_pushes_of_section_4():
    p = torch.tensor([0.02, 0.5], dtype=torch.float64)
    limits = {"mean": [0.0196, 0.25], "std": [0.14, 0.5], "maxrl": [0.98, 0.5]}
    for method, expected in limits.items():
        assert A.difficulty_weight(p, 900, method).tolist() == pytest.approx(expected, rel=0.02)
    half = torch.tensor([0.5], dtype=torch.float64)
    for method, weight in (("mean", 0.125), ("std", 0.177), ("maxrl", 0.25)):
        assert A.difficulty_weight(half, 2, method).item() == pytest.approx(weight, abs=5e-4)
    nobody = A.difficulty_weight(torch.tensor([0.02]).double(), 8, "maxrl").item()
    assert 1 - (0.02 + nobody) == pytest.approx(0.85, abs=0.005)  # (1 − p) − (1 − p)^8


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


def test_a_teacher_who_always_adds_solves_some_problems_and_only_adds():
    adds = word_problems.Slop(add=1.0, stop=0.0, format=0.0, slip=0.0)
    problems = load_task("word_problems", seed=0).evaluation  # 26 to 43 of 256, on twelve seeds
    answers = [word_problems.sloppy_answer(p, adds, Random(0)) for p in problems]
    assert not any(op in answer for answer in answers for op in (" - ", " * ", " / "))
    solved = [
        extract_answer(a) == extract_answer(p.answer)
        for a, p in zip(answers, problems, strict=True)
    ]
    assert 0 < sum(solved) < len(solved) / 2
