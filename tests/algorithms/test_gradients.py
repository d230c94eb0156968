"""Every loss against its formula: value and gradient, derived by hand and by finite differences."""

import math

import pytest
import torch
from algorithm_cases import LOSSES, loss_and_gradient, make_batch

from rlcourse.algorithms import (
    grpo_gradient_coefficient,
    grpo_loss,
    importance_weights,
    kl_estimates,
    ppo_clip_loss,
    value_loss,
)

CLIP, BETA = 0.2, 0.04


def clipped_token(ratio, advantage):
    """min(ratio·A, clip(ratio)·A) and its derivative with respect to the log-prob."""
    stopped = (advantage > 0 and ratio > 1 + CLIP) or (advantage < 0 and ratio < 1 - CLIP)
    edge = 1 + CLIP if advantage > 0 else 1 - CLIP
    return (edge * advantage, 0.0) if stopped else (ratio * advantage, ratio * advantage)


def token_terms(name, b, n, t):
    """One token's term of the loss and its derivative, in plain floats; see the syllabus."""
    logp, old, ref = (x[n, t].item() for x in (b.logprobs, b.old_logprobs, b.ref_logprobs))
    advantage, ratio = b.advantages[n].item(), math.exp(logp - old)
    if name == "sft_loss":
        return -logp, -1.0
    if name == "reinforce_loss":
        return -b.rewards[n].item() * logp, -b.rewards[n].item()
    if name == "off_policy_loss":
        return -advantage * ratio, -advantage * ratio
    objective, slope = clipped_token(ratio, advantage)
    if name == "ppo_clip_loss":
        return -objective, -slope
    if name == "grpo_loss":
        kl = math.exp(ref - logp) - (ref - logp) - 1
        return -objective + BETA * kl, -slope + BETA * (1 - math.exp(ref - logp))
    value, old_value, target = (x[n, t].item() for x in (b.values, b.old_values, b.returns))
    near = min(max(value, old_value - CLIP), old_value + CLIP)
    if (near - target) ** 2 > (value - target) ** 2:
        return (near - target) ** 2 / 2, value - target if near == value else 0.0
    return (value - target) ** 2 / 2, value - target


def by_hand(name, b):
    """The loss and its gradient by loops over the real tokens."""
    rows, width = b.mask.shape
    lengths = b.mask.sum(1).tolist()
    weight = {
        "sft_loss": lambda n: 1 / sum(lengths),
        "ppo_clip_loss": lambda n: 1 / sum(lengths),
        "value_loss": lambda n: 1 / sum(lengths),
        "reinforce_loss": lambda n: 1 / rows,
        "off_policy_loss": lambda n: 1 / rows,
        "grpo_loss": lambda n: 1 / rows / lengths[n],
    }[name]
    loss, gradient = 0.0, torch.zeros(rows, width, dtype=torch.float64)
    for n in range(rows):
        for t in range(lengths[n]):
            value, slope = token_terms(name, b, n, t)
            loss += weight(n) * value
            gradient[n, t] = weight(n) * slope
    return torch.tensor(loss, dtype=torch.float64), gradient


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("name", LOSSES)
def test_loss_and_gradient_are_those_of_the_formula(name, seed):
    batch = make_batch(seed, rows=6, width=6 if seed % 2 else 8)  # N == T as well
    loss, gradient = loss_and_gradient(name, batch)
    expected_loss, expected_gradient = by_hand(name, batch)
    torch.testing.assert_close(loss, expected_loss, rtol=1e-10, atol=1e-12)
    torch.testing.assert_close(gradient, expected_gradient, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("name", ["off_policy_loss", "ppo_clip_loss", "grpo_loss"])
def test_advantages_per_completion_and_per_token_agree(name):
    batch = make_batch(5, rows=6, width=6)
    per_row = loss_and_gradient(name, batch)
    batch.advantages = batch.advantages[:, None].expand(6, 6).clone()
    per_token = loss_and_gradient(name, batch)
    torch.testing.assert_close(per_row, per_token)


def test_advantages_per_token_are_used_per_token():
    batch = make_batch(5, rows=4, width=4, lengths=[4, 4, 4, 4])
    batch.logprobs = batch.old_logprobs
    batch.advantages = torch.randn(4, 4, generator=torch.Generator().manual_seed(1)).double()
    for name, weight in (("off_policy_loss", 1 / 4), ("ppo_clip_loss", 1 / 16)):
        _, gradient = loss_and_gradient(name, batch)
        torch.testing.assert_close(gradient, -weight * batch.advantages)


# the clip


def test_clip_is_a_mask_on_the_gradient():
    batch = make_batch(3, rows=8, width=8)
    logprobs = batch.logprobs.clone().requires_grad_()
    loss, fraction = ppo_clip_loss(logprobs, batch.old_logprobs, batch.advantages, batch.mask, CLIP)
    (gradient,) = torch.autograd.grad(loss, logprobs)

    ratio = (batch.logprobs - batch.old_logprobs).exp()
    up, down = ratio > 1 + CLIP, ratio < 1 - CLIP
    positive = batch.advantages[:, None] > 0
    stopped = torch.where(positive, up, down) & batch.mask
    flows_outside = torch.where(positive, down, up) & batch.mask
    assert stopped.any() and flows_outside.any(), "the case must hold both kinds of token"
    assert (gradient[stopped] == 0).all()
    assert (gradient[flows_outside] != 0).all()
    assert fraction.item() == pytest.approx((stopped.sum() / batch.mask.sum()).item())
    assert not fraction.requires_grad


@pytest.mark.parametrize("clip", [0.05, 0.1, 0.5])
def test_clip_width_is_used(clip):
    batch = make_batch(3, rows=8, width=8, lengths=[8] * 8)
    loss, _ = ppo_clip_loss(
        batch.logprobs, batch.old_logprobs, batch.advantages, batch.mask, clip=clip
    )
    ratio = (batch.logprobs - batch.old_logprobs).exp()
    advantages = batch.advantages[:, None]
    expected = -torch.minimum(ratio * advantages, ratio.clamp(1 - clip, 1 + clip) * advantages)
    torch.testing.assert_close(loss, expected.mean())


def test_value_clip_width_is_used():
    zeros, mask = torch.zeros(1, 1).double(), torch.ones(1, 1)
    losses = [
        value_loss(zeros + 3.0, zeros + 4.0, zeros, mask, clip=clip).item() for clip in (0.5, 2.0)
    ]
    assert losses == pytest.approx([3.5**2 / 2, 2.0**2 / 2])


# on policy, everything is REINFORCE


@pytest.mark.parametrize("beta", [0.0, 0.04, 0.7])
def test_grpo_coefficient_is_the_gradient_of_grpo_loss_at_the_first_update(beta):
    batch = make_batch(9, rows=5, width=5, lengths=[5, 4, 3, 1, 0])
    logprobs = batch.logprobs.clone().requires_grad_()
    loss = grpo_loss(
        logprobs, batch.logprobs, batch.ref_logprobs, batch.advantages, batch.mask, beta=beta
    )
    (gradient,) = torch.autograd.grad(loss, logprobs)
    coefficient = grpo_gradient_coefficient(
        batch.advantages, batch.logprobs, batch.ref_logprobs, beta
    )
    weight = batch.mask / batch.mask.sum(1, keepdim=True).clamp(min=1) / len(batch.mask)
    torch.testing.assert_close(-gradient, weight * coefficient)
    per_token = grpo_gradient_coefficient(
        batch.advantages[:, None].expand(5, 5), batch.logprobs, batch.ref_logprobs, beta
    )
    torch.testing.assert_close(per_token, coefficient)


# weights and estimators


@pytest.mark.parametrize("level", ["token", "sequence"])
def test_importance_weights_are_products_of_ratios(level):
    batch = make_batch(2, lengths=[7, 5, 1, 0, 3])
    weights = importance_weights(batch.logprobs, batch.old_logprobs, batch.mask, level)
    for n, length in enumerate([7, 5, 1, 0, 3]):
        ratios = [
            math.exp(batch.logprobs[n, t].item() - batch.old_logprobs[n, t].item())
            for t in range(length)
        ]
        if level == "token":
            assert weights[n].tolist() == pytest.approx(ratios + [0.0] * (7 - length))
        else:
            assert weights[n].item() == pytest.approx(math.prod(ratios) if length else 0.0)


@pytest.mark.parametrize("level", ["token", "sequence"])
def test_gradient_of_a_ratio_is_the_ratio_times_the_score(level):
    batch = make_batch(2, lengths=[7, 5, 1, 0, 3])
    logprobs = batch.logprobs.clone().requires_grad_()
    weights = importance_weights(logprobs, batch.old_logprobs, batch.mask, level)
    (gradient,) = torch.autograd.grad(weights.sum(), logprobs)
    per_token = weights if level == "token" else weights[:, None] * batch.mask
    torch.testing.assert_close(gradient, per_token.detach())


def test_sequence_weight_does_not_underflow():
    mask = torch.ones(1, 4000)
    weights = importance_weights(torch.full((1, 4000), -9.0), torch.full((1, 4000), -9.0), mask,
                                 level="sequence")  # fmt: skip
    assert weights.item() == 1.0


@pytest.mark.parametrize(
    "estimator, value, slope",
    [
        ("k1", lambda d: d, lambda d: 1.0),
        ("k2", lambda d: d * d / 2, lambda d: d),
        ("k3", lambda d: math.exp(-d) - 1 + d, lambda d: 1 - math.exp(-d)),
    ],
)
def test_kl_estimates_and_their_derivatives(estimator, value, slope):
    batch = make_batch(6)
    logprobs = batch.logprobs.clone().requires_grad_()
    estimates = kl_estimates(logprobs, batch.ref_logprobs, estimator)
    (gradient,) = torch.autograd.grad(estimates.sum(), logprobs)
    differences = (batch.logprobs - batch.ref_logprobs).flatten().tolist()
    assert estimates.flatten().tolist() == pytest.approx([value(d) for d in differences])
    assert gradient.flatten().tolist() == pytest.approx([slope(d) for d in differences])


def test_k3_of_nearly_equal_policies_keeps_its_digits():
    d = torch.tensor([[1e-4]])  # in float32 exp(−d) − 1 + d would be all rounding
    assert kl_estimates(d, torch.zeros(1, 1), "k3").item() == pytest.approx(5e-9, rel=0.01)
