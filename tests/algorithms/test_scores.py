"""Scores of the softmax by autograd, and the first update of GRPO, whose loss says nothing."""

import pytest
import torch

from rlcourse import algorithms as A

LOGITS = torch.tensor([0.5, 0.3, 0.2], dtype=torch.float64).log() + 2.0  # any constant will do


def by_autograd(action):
    logits = LOGITS.clone().requires_grad_()
    return torch.autograd.grad(logits.log_softmax(0)[action], logits)[0]


@pytest.mark.parametrize("action", range(3))
def test_a_score_is_the_gradient_of_the_log_probability(action):
    torch.testing.assert_close(A.score_function(LOGITS, action), by_autograd(action))


def test_scores_weighted_by_the_policy_sum_to_zero():
    rows = A.weighted_scores(LOGITS)
    expected = [p * by_autograd(action) for action, p in enumerate(LOGITS.softmax(0))]
    torch.testing.assert_close(rows, torch.stack(expected))
    torch.testing.assert_close(rows.sum(0), torch.zeros(3).double())


def test_at_the_first_update_the_loss_is_zero_and_its_gradient_is_not():
    advantages = A.group_normalized_advantages(torch.tensor([1.0, 0, 0, 1]).double(), 4)
    logprobs = -torch.rand(4, 3, generator=torch.Generator().manual_seed(0)).double()
    mask = torch.tensor([[1, 1, 1], [1, 0, 0], [1, 1, 0], [1, 1, 1]], dtype=torch.bool)
    current = logprobs.clone().requires_grad_()
    loss = A.grpo_loss(current, logprobs, logprobs, advantages, mask)
    (gradient,) = torch.autograd.grad(loss, current)
    assert loss.item() == pytest.approx(0.0, abs=1e-12)
    assert gradient.norm().item() > 0.1
