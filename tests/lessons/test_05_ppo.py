"""Lesson 05: the direction of each of its contrasts."""

import os

import pytest
import torch

from rlcourse import algorithms as A
from rlcourse.policy import ToyPolicy


def tensor(*values):
    return torch.tensor(values, dtype=torch.float64)


def test_a_step_of_one_in_the_logit_costs_less_and_less():
    kls = [A.kl_divergence(tensor(z, 0), tensor(z + 1, 0)).item() for z in (0.0, 3.0, 6.0)]
    assert kls[0] == pytest.approx(0.1201, abs=5e-5)
    assert kls[0] / kls[2] > 100
    assert kls[0] == pytest.approx(0.5 * 0.25, rel=0.05), "the quadratic model, F = p(1 − p)"


def trpo_step(logits, rewards, delta):
    old, logits = logits.clone(), logits.clone().requires_grad_()

    def kl():
        return A.kl_divergence(old, logits)

    g = A.exact_policy_gradient(old, rewards)
    natural = A.conjugate_gradient(lambda v: A.fisher_vector_product(kl, [logits], v, 1e-6), g)
    step = (2 * delta / (g @ natural)).sqrt() * natural
    A.backtracking_line_search(
        lambda: logits.softmax(-1) @ rewards, kl, [logits], step, delta, shrink=0.8
    )
    return logits.detach()


def test_trust_region_steps_alike_where_gradient_steps_differ_by_orders_of_magnitude():
    rewards, starts = tensor(0, 1, 0), [tensor(z, 0, 0) for z in (0.0, 3.0, 6.0)]
    plain = [A.kl_divergence(s, s + 4 * A.exact_policy_gradient(s, rewards)) for s in starts]
    trusted = [A.kl_divergence(s, trpo_step(s, rewards, 0.01)) for s in starts]
    assert plain[0] / plain[2] > 1e4
    assert all(0.005 < kl <= 0.01 for kl in trusted)


def toy_reward(batch):
    return (((batch.tokens == 2) & batch.mask).sum(1) == 1).double()


def many_updates(clip, updates):
    old, toy = (ToyPolicy(vocab_size=3, length=4, seed=1, eos_id=0) for _ in range(2))
    batch = toy.sample(64, generator=torch.Generator().manual_seed(0))
    old_logprobs, rewards = toy.logprobs(batch).detach(), toy_reward(batch)
    optimizer = torch.optim.Adam(toy.parameters(), lr=0.05)
    for _ in range(updates):
        logprobs = toy.logprobs(batch)
        loss, stopped = A.ppo_clip_loss(
            logprobs, old_logprobs, rewards - rewards.mean(), batch.mask, clip
        )
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    outside = ((logprobs.detach() - old_logprobs).exp() - 1).abs() > 0.2
    return old.kl(toy).item(), outside[batch.mask].double().mean().item(), float(stopped)


def test_the_clip_ends_the_drift_but_does_not_hold_the_ratio_in_its_band():
    kl, outside, stopped = many_updates(0.2, updates=60)
    # Twelve toys and batches: without the clip 8 to 24 times as far; .41 to 1 of tokens outside.
    assert many_updates(1e6, updates=60)[0] > 4 * kl
    assert outside > 0.2
    assert outside > stopped, "some are outside on the side from which they may return"


def values_of(rewards, rows, p):
    """What a critic that expects these rewards says before every token."""
    values = torch.zeros(rows.tokens.shape).double()
    for t in range(values.shape[1]):
        begin = rows.tokens[:, :t]
        weights = (begin[:, None] == begin[None]).all(-1) * p
        values[:, t] = weights @ rewards / weights.sum(1)
    return values


def test_bias_of_a_wrong_critic_vanishes_at_lambda_one_and_its_noise_grows():
    toy = ToyPolicy(vocab_size=3, length=4, seed=1, eos_id=0)
    rows, p = toy.trajectories(), toy.probabilities().detach()
    R = toy_reward(rows)
    (exact,) = torch.autograd.grad(toy.expected_reward(R), toy.logits)
    falsified = R + torch.randn(len(p), generator=torch.Generator().manual_seed(0))
    values = values_of(falsified, rows, p)
    last = rows.mask & (rows.mask.flip(1).cumsum(1).flip(1) == 1)
    bias = {}
    for lam in (0.0, 0.5, 1.0):
        advantages, _ = A.gae(last * R[:, None], values, rows.mask, lam=lam)
        J = (p * (advantages * toy.logprobs(rows)).sum(1)).sum()
        bias[lam] = (torch.autograd.grad(J, toy.logits)[0] - exact).norm() / exact.norm()
    assert bias[0.0] > bias[0.5] > 0.1
    assert bias[1.0] < 1e-12


def test_an_exact_critic_beats_a_constant_a_slightly_wrong_one_at_some_lambda_a_bad_one_never():
    """Error of 64 sentences' mean gradient, √(bias² + noise²/64), over all sentences: exact."""
    toy = ToyPolicy(vocab_size=3, length=4, seed=1, eos_id=0)
    rows, p = toy.trajectories(), toy.probabilities().detach()
    R = toy_reward(rows)
    (exact,) = torch.autograd.grad(toy.expected_reward(R), toy.logits)
    last = rows.mask & (rows.mask.flip(1).cumsum(1).flip(1) == 1)

    def error(values, lam):
        advantages, _ = A.gae(last * R[:, None], values, rows.mask, lam=lam)
        each = (advantages * toy.logprobs(rows)).sum(1)
        g = torch.stack(
            [torch.autograd.grad(x, toy.logits, retain_graph=True)[0].flatten() for x in each]
        )
        bias, noise = p @ g - exact.flatten(), (p @ (g - p @ g).square()).sum()
        return ((bias.square().sum() + noise / 64).sqrt() / exact.norm()).item()

    none = error(torch.full(rows.tokens.shape, float(p @ R)).double(), 1.0)

    def curve(size):
        """Relative to no critic, for λ from 0 to 1: root mean square over eight wrong critics."""
        draws = [torch.randn(len(p), generator=torch.Generator().manual_seed(k)) for k in range(8)]
        values = [values_of(R + size * wrong, rows, p) for wrong in (draws if size else draws[:1])]
        each = [[error(v, i / 10) ** 2 / none**2 for v in values] for i in range(11)]
        return [(sum(errors) / len(errors)) ** 0.5 for errors in each]

    # In brackets the worst of ten toys, or of nine where eight critics are drawn.
    exact_critic, slightly, badly = curve(0.0), curve(0.3), curve(1.0)
    assert exact_critic == sorted(exact_critic) and exact_critic[0] < 0.9  # (.81)
    assert 4 <= slightly.index(min(slightly)) <= 9  # (5 to 8)
    assert min(slightly) < 1.1 and slightly[0] > 1.01 * min(slightly)  # (1.03, 1.02)
    assert min(badly) > 1.1  # (1.22)
    if not os.environ.get("RLCOURSE_TESTS_PERTURBED"):  # the lesson's own toy, to the last digit
        assert min(slightly) < 0.95 and slightly[0] > 1.1 and min(badly) > 1.5
