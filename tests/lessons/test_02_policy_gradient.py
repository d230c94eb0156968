"""Lesson 02: what its gradients do to each action, exactly."""

import pytest
import torch

from rlcourse import algorithms as A

PI, REWARDS = torch.tensor([0.5, 0.3, 0.2]).double(), torch.tensor([0.0, 1.0, 0.0]).double()


def test_score_of_a_certain_token_is_0_and_none_is_longer_than_the_root_of_2():
    certain = torch.tensor([200.0, 0.0, 0.0]).double()
    assert A.score_function(certain, 0).norm() == pytest.approx(0)
    assert A.score_function(certain, 1).norm() == pytest.approx(2**0.5)
    logits = torch.randn(1000, 5, generator=torch.Generator().manual_seed(0)) * 4
    assert all(A.score_function(row, 2).norm() <= 2**0.5 + 1e-6 for row in logits)


def test_what_earns_less_than_the_average_falls_although_it_earns_something():
    push = A.exact_policy_gradient(PI.log(), torch.tensor([1.0, 2.0, 0.0]).double())
    assert push.tolist() == pytest.approx([-0.05, 0.27, -0.22])
    only_b = A.exact_policy_gradient(PI.log(), REWARDS)
    for rewards, falls in ((push, 2), (only_b, 2)):
        assert (PI.log() + rewards).softmax(0)[falls] < PI[falls]
    # C falls farther where A is paid as well.
    assert (PI.log() + push).softmax(0)[2] < (PI.log() + only_b).softmax(0)[2]


def test_four_draws_without_the_best_answer_push_it_down():
    paid = torch.tensor([1.0, 2.0, 0.0]).double()
    draws = torch.cartesian_prod(*[torch.arange(3)] * 4)
    chance = PI[draws].prod(dim=1)
    down = torch.stack([A.monte_carlo_policy_gradient(PI.log(), paid, d)[1] < 0 for d in draws])
    assert (chance[down].sum()).item() == pytest.approx(0.7**4 - 0.2**4)  # all but C four times
