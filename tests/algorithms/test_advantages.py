"""Baselines, group normalization, GAE, whitening and reward shaping against plain loops."""

import statistics

import pytest
import torch
from algorithm_cases import make_batch, right_padded_mask

from rlcourse.algorithms import (
    effective_sample_size,
    gae,
    gradient_variance,
    group_mean_advantages,
    group_normalized_advantages,
    kl_shaped_rewards,
    leave_one_out_advantages,
    optimal_baseline,
    whiten,
)

LENGTHS = [6, 4, 1, 0]


def rewards_of(groups, size, seed=0):
    return torch.randn(groups * size, generator=torch.Generator().manual_seed(seed)).double()


# group baselines


@pytest.mark.parametrize("groups, size", [(1, 4), (3, 2), (4, 4), (2, 7)])
def test_group_advantages_by_loops(groups, size):
    rewards = rewards_of(groups, size)
    mean = group_mean_advantages(rewards, size)
    others = leave_one_out_advantages(rewards, size)
    normalized = group_normalized_advantages(rewards, size, eps=1e-4)
    assert mean.shape == others.shape == normalized.shape == (groups * size,)
    for i in range(groups * size):
        first = i // size * size
        group = rewards[first : first + size].tolist()
        reward = group[i - first]
        rest = [r for j, r in enumerate(group) if j != i - first]
        assert mean[i].item() == pytest.approx(reward - statistics.mean(group))
        assert others[i].item() == pytest.approx(reward - statistics.mean(rest))
        assert normalized[i].item() == pytest.approx(
            (reward - statistics.mean(group)) / (statistics.stdev(group) + 1e-4)
        )


def test_group_of_one():
    rewards = rewards_of(3, 1)
    assert (group_mean_advantages(rewards, 1) == 0).all()
    assert (group_normalized_advantages(rewards, 1) == 0).all()
    # no other completion, so no baseline
    torch.testing.assert_close(leave_one_out_advantages(rewards, 1), rewards)


def test_optimal_baseline_weighs_rewards_by_score_norms():
    rewards = torch.tensor([1.0, 0.0, 1.0]).double()
    norms = torch.tensor([1.0, 6.0, 2.0]).double()
    assert optimal_baseline(rewards, norms).item() == pytest.approx(3 / 9)
    # all pull equally: the plain mean
    assert optimal_baseline(rewards, torch.ones(3).double()).item() == pytest.approx(2 / 3)


def test_gradient_variance_is_the_trace_of_the_covariance():
    gradients = torch.randn(9, 4, generator=torch.Generator().manual_seed(0)).double()
    expected = sum(statistics.variance(column) for column in gradients.T.tolist())
    assert gradient_variance(gradients).item() == pytest.approx(expected)
    assert gradient_variance(gradients).item() == pytest.approx(
        torch.cov(gradients.T).trace().item()
    )


@pytest.mark.parametrize(
    "weights, size", [([2.0] * 5, 5), ([0, 0, 7.0], 1), ([0.0, 0, 0], 0), ([1.0, 3], 1.6)]
)
def test_effective_sample_size(weights, size):
    assert effective_sample_size(torch.tensor(weights)).item() == pytest.approx(size)


def test_effective_sample_size_does_not_depend_on_the_scale():
    weights = torch.rand(8, generator=torch.Generator().manual_seed(0)) + 0.1
    expected = weights.double().sum() ** 2 / (weights.double() ** 2).sum()
    for scale in (1e-30, 1.0, 1e30):
        size = effective_sample_size(weights * scale)
        assert size.item() == pytest.approx(expected.item(), rel=1e-5)


# GAE


def gae_by_definition(rewards, values, length, gamma, lam):
    """Â_t = Σ_k (γλ)^k δ_{t+k}, with V = 0 after the end (Schulman et al. 2016, eq. 16)."""
    after = [*values[1:length], 0.0]
    delta = [rewards[t] + gamma * after[t] - values[t] for t in range(length)]
    return [
        sum((gamma * lam) ** (k - t) * delta[k] for k in range(t, length)) for t in range(length)
    ]


@pytest.mark.parametrize("gamma, lam", [(1.0, 0.95), (0.9, 0.8), (0.8, 0.9), (1, 0), (0.9, 1)])
def test_gae_by_definition(gamma, lam):
    batch = make_batch(1, rows=4, width=6, lengths=LENGTHS)
    rewards, values = batch.returns, batch.values
    advantages, returns = gae(rewards, values, batch.mask, gamma, lam)
    for n, length in enumerate(LENGTHS):
        expected = gae_by_definition(rewards[n].tolist(), values[n].tolist(), length, gamma, lam)
        padding = [0.0] * (6 - length)
        assert advantages[n].tolist() == pytest.approx(expected + padding)
        targets = [a + v for a, v in zip(expected, values[n].tolist(), strict=False)]
        assert returns[n].tolist() == pytest.approx(targets + padding)


# whiten, kl_shaped_rewards


def test_whitened_tokens_have_mean_zero_and_variance_one():
    batch = make_batch(5, rows=4, width=6, lengths=LENGTHS)
    white = whiten(batch.values * 3 + 7, batch.mask)
    real = white[batch.mask]
    assert real.mean().item() == pytest.approx(0, abs=1e-10)
    assert real.var(correction=0).item() == pytest.approx(1, abs=1e-6)
    assert (white[~batch.mask] == 0).all()
    order = batch.values[batch.mask].argsort()
    assert torch.equal(real.argsort(), order)


def test_whitening_equal_tokens_gives_zero():
    mask = right_padded_mask(LENGTHS, 6)
    assert (whiten(torch.full((4, 6), 3.0), mask) == 0).all()


def test_score_arrives_at_the_last_real_token():
    batch = make_batch(6, rows=4, width=6, lengths=LENGTHS)
    shaped = kl_shaped_rewards(
        batch.rewards, batch.logprobs, batch.ref_logprobs, batch.mask, beta=0.3
    )
    for n, length in enumerate(LENGTHS):
        for t in range(6):
            expected = 0.0
            if t < length:
                expected = -0.3 * (batch.logprobs[n, t] - batch.ref_logprobs[n, t]).item()
            if t == length - 1:
                expected += batch.rewards[n].item()
            assert shaped[n, t].item() == pytest.approx(expected)
