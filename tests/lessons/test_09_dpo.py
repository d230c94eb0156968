"""Lesson 09: what its optimum and its loss imply, and a run that is pushed too far."""

import math

import pytest
import torch

from rlcourse import algorithms as A
from rlcourse.training import load_recipe, train


def test_what_the_reference_never_says_stays_impossible_however_short_the_leash():
    best = A.optimal_policy(torch.tensor([0.6, 0.4, 0.0]), torch.tensor([0.0, 0.5, 60.0]), 0.05)
    assert best[2] == 0 and best.sum().item() == pytest.approx(1.0)


def test_no_random_policy_of_the_picture_lies_above_the_line():
    generator = torch.Generator().manual_seed(1)
    start = torch.randn(6, generator=generator).softmax(0)
    worth = torch.randn(6, generator=generator)
    others = (start.log() + 1.5 * torch.randn(3000, 6, generator=generator)).softmax(1)
    for beta in (0.1, 0.5, 2.0):
        best = A.optimal_policy(start, worth, beta)

        def earned(policy, beta=beta):
            distance = A.kl_divergence(policy.log(), start.log().expand_as(policy))
            return policy @ worth - beta * distance

        assert earned(others).max() < earned(best)


def test_one_wrong_label_in_ten_wants_a_margin_of_two_point_two():
    margins = torch.linspace(-2, 8, 10_001)
    zero = torch.zeros(1)
    losses = [A.dpo_loss(m[None], zero, zero, zero, 1.0, 0.1)[0] for m in margins[::10]]
    best = margins[::10][torch.stack(losses).argmin()].item()
    assert best == pytest.approx(math.log(9), abs=0.02) == pytest.approx(2.2, abs=0.02)


@pytest.mark.weekly
def test_pushed_too_far_loss_falls_and_so_do_both_log_ratios(warm_start):
    recipe = load_recipe("dpo", seed=3, eval_problems=100, eval_samples=1)
    hasty = recipe.but(lr=2e-4, schedule="constant", beta=0.1, steps=60)
    calm, wild = (train(r, policy=warm_start, progress=False) for r in (recipe, hasty))
    assert calm.metrics[0]["loss"] == pytest.approx(math.log(2), abs=1e-4)
    assert calm.after.accuracy.value > calm.before.accuracy.value + 0.2
    last, wild_last = calm.metrics[-1], wild.metrics[-1]
    assert wild_last["loss"] < last["loss"]
    assert wild_last["rewards/rejected"] < wild_last["rewards/chosen"] < 0
    assert wild.after.accuracy.value < calm.after.accuracy.value - 0.2
