"""Lesson 17: its derivations against sums over everything."""

import pytest
import torch

from rlcourse import algorithms as A
from rlcourse.policy import ToyPolicy


@pytest.mark.parametrize("eos_id", [None, 0])
def test_the_divergence_of_texts_is_the_sum_over_their_words(eos_id):
    start, policy = ToyPolicy(seed=0, eos_id=eos_id), ToyPolicy(seed=1, eos_id=eos_id)
    sentences, chance = start.trajectories(), start.probabilities()

    def logits_of(toy):
        prefix, found = torch.zeros_like(sentences.tokens[:, 0]), []
        for word in sentences.tokens.unbind(dim=1):
            found.append(toy.logits[prefix])
            prefix = toy.child(prefix, word)
        return torch.stack(found, dim=1).detach()

    a, b = logits_of(start), logits_of(policy)
    rows = zip(a, b, sentences.mask, strict=True)
    each = [A.kl_to_start(x[None], y[None], m[None]) for x, y, m in rows]
    torch.testing.assert_close(chance @ torch.stack(each), start.kl(policy))
    assert start.kl(policy) > 0.1


def test_entropy_moves_by_minus_the_covariance():
    z = torch.tensor([1.2, 0.1, -0.7, 0.4], dtype=torch.float64, requires_grad=True)
    gains = torch.tensor([0.5, -1.0, 2.0, 0.3], dtype=torch.float64)
    logp = z.log_softmax(0)
    H = -(logp.exp() * logp).sum()
    (slope,) = torch.autograd.grad(H, z)
    # Every word as often as it is drawn: the mean of the batch is the expectation.
    counts = (logp.exp() * 1e6).round().long()
    words = torch.repeat_interleave(torch.arange(4), counts)
    drift = A.entropy_drift(
        logp.detach()[words, None], H.detach().expand(len(words), 1), gains[words],
        torch.ones(len(words), 1),
    )  # fmt: skip
    assert drift.item() == pytest.approx((slope @ gains).item(), abs=1e-5)


def test_a_bonus_is_an_advantage_and_raises_the_entropy_by_the_variance():
    z = torch.tensor([1.2, 0.1, -0.7, 0.4], dtype=torch.float64, requires_grad=True)
    logp = z.log_softmax(0)
    p, H = logp.exp().detach(), -(logp.exp() * logp).sum()
    (slope,) = torch.autograd.grad(H, z)
    surprise = (logp + H).detach()
    torch.testing.assert_close(slope, A.exact_policy_gradient(z.detach(), -surprise))
    variance = (p * logp.detach() ** 2).sum() - (p @ logp.detach()) ** 2
    torch.testing.assert_close(slope @ -surprise, variance)


@pytest.mark.parametrize("rewards, k, expected", [
    ([1, 0, 0, 0], 2, [2, -2 / 3, -2 / 3, -2 / 3]),
    ([1, 0, 0, 1], 2, [2 / 3, -2 / 3, -2 / 3, 2 / 3]),
    ([1, 1, 0, 1], 2, [0, 0, 0, 0]),
])  # fmt: skip
def test_the_groups_of_section_4(rewards, k, expected):
    found = A.pass_at_k_advantages(torch.tensor(rewards).double(), 4, k)
    assert found.tolist() == pytest.approx(expected)


@pytest.mark.parametrize("k", [1, 2, 3, 4])
def test_the_expected_gradient_is_that_of_pass_at_k(k):
    z = torch.tensor([0.5, -0.2, 0.9, 0.0], dtype=torch.float64, requires_grad=True)
    right = torch.tensor([1.0, 0, 0, 1], dtype=torch.float64)
    groups = torch.cartesian_prod(*[torch.arange(4)] * 5)
    p = z.softmax(0).detach()
    scores = torch.eye(4, dtype=torch.float64)[groups] - p
    advantages = A.pass_at_k_advantages(right[groups].flatten(), 5, k).reshape(-1, 5)
    expected = p[groups].prod(1) @ (advantages[..., None] * scores).mean(1)
    (exact,) = torch.autograd.grad(1 - (1 - (z.softmax(0) * right).sum()) ** k, z)
    torch.testing.assert_close(expected, exact)


def test_with_k_of_1_they_are_leave_one_out_and_always_add_up_to_0():
    g = torch.Generator().manual_seed(0)
    rewards = (torch.rand(40, generator=g) < 0.4).double()
    found = A.pass_at_k_advantages(rewards, 8, 1)
    torch.testing.assert_close(found, A.leave_one_out_advantages(rewards, 8))
    for k in range(1, 8):
        sums = A.pass_at_k_advantages(rewards, 8, k).reshape(-1, 8).sum(1)
        torch.testing.assert_close(sums, torch.zeros(5).double())


def test_the_three_steps_of_section_5():
    steps, accuracy = torch.tensor([5.0, 10, 20]), torch.tensor([0.3, 0.4, 0.5])
    top, midpoint, exponent = A.fit_saturation(steps, accuracy, 0.2, [10], [1.0])
    assert (top, midpoint, exponent) == (pytest.approx(0.614, abs=5e-4), 10, 1.0)


def test_a_curve_of_the_grid_is_found_again():
    t = torch.arange(1, 20).double()
    accuracy = 0.2 + 0.6 / (1 + (8 / t) ** 1.5)
    found = A.fit_saturation(t, accuracy, 0.2, [4, 8, 16], [1.0, 1.5, 2.0])
    assert found == (pytest.approx(0.8), 8, 1.5)
