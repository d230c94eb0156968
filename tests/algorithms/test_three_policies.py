"""Lesson 12's functions against exact oracles: sums over a vocabulary, autograd, closed forms."""

import pytest
import torch
from algorithm_cases import make_batch

from rlcourse.algorithms import (
    changed_share,
    cispo_loss,
    dapo_loss,
    decoupled_loss,
    truncated_weights,
)


def gradient(loss, logprobs, *arguments, **options):
    logprobs = logprobs.clone().requires_grad_()
    (slope,) = torch.autograd.grad(loss(logprobs, *arguments, **options), logprobs)
    return slope


def test_untruncated_weights_make_the_samplers_mean_the_trainers():
    trainer, sampler = (torch.randn(2, 7, dtype=torch.float64).log_softmax(1)).unbind()
    worth = torch.randn(7, dtype=torch.float64)
    mask = torch.ones(1, 7)
    weights = truncated_weights(trainer[None], sampler[None], mask, cap=1e9)[0]
    mean = (sampler.exp() * weights * worth).sum()
    torch.testing.assert_close(mean, (trainer.exp() * worth).sum())


def test_decoupled_loss_is_dapos_with_each_advantage_weighed():
    batch = make_batch(3)
    sampler = batch.old_logprobs + 0.7 * torch.randn_like(batch.old_logprobs)
    weights = truncated_weights(batch.old_logprobs, sampler, batch.mask, 1.5)
    arguments = (batch.old_logprobs, sampler, batch.advantages, batch.mask)
    weighed = batch.advantages[:, None] * weights
    torch.testing.assert_close(
        decoupled_loss(batch.logprobs, *arguments, cap=1.5),
        dapo_loss(batch.logprobs, batch.old_logprobs, weighed, batch.mask, 0.2, 0.2),
    )
    torch.testing.assert_close(
        gradient(decoupled_loss, batch.logprobs, *arguments, cap=1.5),
        gradient(dapo_loss, batch.logprobs, batch.old_logprobs, weighed, batch.mask, 0.2, 0.2),
    )


def test_every_token_of_cispo_keeps_a_gradient_of_its_bounded_weight():
    batch = make_batch(3)
    slope = gradient(cispo_loss, batch.logprobs, batch.old_logprobs, batch.advantages, batch.mask)
    ratio = (batch.logprobs - batch.old_logprobs).exp().clamp(max=5.0)
    expected = -ratio * batch.advantages[:, None] * batch.mask / batch.mask.sum()
    torch.testing.assert_close(slope, expected.to(slope.dtype))
    ppo = gradient(dapo_loss, batch.logprobs, batch.old_logprobs, batch.advantages, batch.mask)
    assert (ppo[batch.mask.bool()] == 0).any() and (slope[batch.mask.bool()] != 0).all()


def test_where_nothing_has_moved_cispo_and_the_clip_have_one_gradient():
    batch = make_batch(3)
    arguments = (batch.logprobs, batch.logprobs, batch.advantages, batch.mask)
    torch.testing.assert_close(gradient(cispo_loss, *arguments), gradient(dapo_loss, *arguments))


def test_the_share_counts_numbers_and_not_tensors():
    before = [torch.zeros(9), torch.zeros(1)]
    assert changed_share(before, [torch.zeros(9), torch.ones(1)]) == pytest.approx(0.1)
    assert changed_share([], []) == 0
    with pytest.raises(ValueError, match="argument 2"):
        changed_share(before, before[:1])
