"""Lesson 04: which estimator's gradient is which, by enumeration."""

import math

import pytest
import torch

from rlcourse import algorithms as A
from rlcourse.policy.toy import ToyPolicy

P, Q = torch.tensor([0.5, 0.3, 0.2]).double(), torch.tensor([0.2, 0.3, 0.5]).double()


def mean_and_std(k):
    mean = P @ k
    return mean.item(), (P @ (k - mean) ** 2).sqrt().item()


def test_effective_share_falls_exponentially_with_length():
    generator = torch.Generator().manual_seed(0)
    log_ratio = 0.1 * torch.randn(20_000, 64, generator=generator, dtype=torch.float64) - 0.005
    weights = A.importance_weights(log_ratio, 0 * log_ratio, log_ratio < 9, level="sequence")
    share = A.effective_sample_size(weights) / 20_000
    assert share.item() == pytest.approx(math.exp(-0.64), rel=0.1)


def test_means_and_noise_of_the_three_estimators():
    k = {n: A.kl_estimates(P.log()[None], Q.log()[None], n)[0] for n in ("k1", "k2", "k3")}
    assert A.kl_divergence(P.log(), Q.log()).item() == pytest.approx(0.2749, abs=5e-5)
    assert mean_and_std(k["k1"]) == pytest.approx((0.2749, 0.7156), abs=1e-4)
    assert mean_and_std(k["k2"]) == pytest.approx((0.2939, 0.1924), abs=1e-4)
    assert mean_and_std(k["k3"]) == pytest.approx((0.2749, 0.2064), abs=1e-4)


def test_k3_with_policy_and_reference_exchanged_reports_355():
    swapped = A.kl_estimates(Q.log()[None], P.log()[None], "k3")[0]
    assert (P @ swapped).item() == pytest.approx(0.355, abs=5e-4)


def test_which_gradient_each_estimator_has_in_the_loss_and_in_the_reward():
    logits = P.log().requires_grad_()
    ref = torch.tensor([0.3, 0.1, 0.6]).double().log()
    logprobs, probabilities = logits.log_softmax(0), logits.softmax(0).detach()

    def grad(scalar):
        return torch.autograd.grad(scalar, logits, retain_graph=True)[0]

    k = {n: A.kl_estimates(logprobs[None], ref[None], n)[0] for n in ("k1", "k2", "k3")}
    in_loss = {n: grad(probabilities @ value) for n, value in k.items()}
    in_reward = {n: grad(probabilities @ (value.detach() * logprobs)) for n, value in k.items()}
    reverse = grad(A.kl_divergence(logits, ref))
    forward = grad(A.kl_divergence(ref, logits))
    torch.testing.assert_close(in_loss["k1"], torch.zeros(3).double())
    torch.testing.assert_close(in_loss["k2"], reverse)
    torch.testing.assert_close(in_loss["k3"], forward)
    torch.testing.assert_close(in_reward["k1"], reverse)
    torch.testing.assert_close(in_reward["k3"], reverse - forward)


@pytest.mark.parametrize("seed", range(5))
def test_penalties_of_single_tokens_are_not_the_gradient_of_a_text_s_divergence(seed):
    """Relative errors on twenty pairs: k2 .18 to 1.7, k3 .40 to 5.8."""
    toy, ref = (
        ToyPolicy(vocab_size=3, length=4, seed=s, eos_id=0) for s in (2 * seed, 2 * seed + 1)
    )
    batch = toy.trajectories()
    weights, logprobs, other = (
        toy.probabilities().detach(),
        toy.logprobs(batch),
        ref.logprobs(batch),
    )

    def error(values):
        found = torch.autograd.grad(weights @ values, toy.logits, retain_graph=True)[0]
        return ((found - exact).norm() / exact.norm()).item()

    (exact,) = torch.autograd.grad(toy.kl(ref), toy.logits)
    d = torch.where(batch.mask, logprobs - other.detach(), 0)
    assert error(d.detach().sum(1) * logprobs.sum(1)) < 1e-12  # k1 in the reward, the whole text
    assert error(d.sum(1) ** 2 / 2) < 1e-12  # k2 of the whole text
    alone = error((d.detach() * logprobs).sum(1))  # k1 in the reward, each token its own
    for name in ("k2", "k3"):
        k = torch.where(batch.mask, A.kl_estimates(logprobs, other, name), 0)
        assert error(k.sum(1)) > 0.1
        assert name == "k3" or error(k.sum(1)) == pytest.approx(alone)


def relative_biases(seed):
    """Of the completion's ratio, the token's and none, in one toy: exact, over all sentences."""
    old = ToyPolicy(vocab_size=3, length=4, seed=seed, eos_id=0)
    everything = old.trajectories()
    rewards = (((everything.tokens == 2) & everything.mask).sum(1) == 1).double()
    weight = len(everything) * old.probabilities().detach() * (rewards - 0.5)
    moved = ToyPolicy(vocab_size=3, length=4, seed=seed, eos_id=0)
    generator = torch.Generator().manual_seed(seed)
    moved.logits.data += 0.4 * torch.randn(moved.logits.shape, generator=generator).double()
    new, before, mask = moved.logprobs(everything), everything.old_logprobs, everything.mask
    ratio = A.importance_weights(new, before, mask, "sequence").detach()

    def gradient(scalar):
        return torch.autograd.grad(scalar, [moved.logits], retain_graph=True)[0]

    exact = gradient(moved.expected_reward(rewards))
    losses = (
        A.reinforce_loss(new, ratio * weight, mask),
        A.off_policy_loss(new, before, weight, mask),
        A.reinforce_loss(new, weight, mask),
    )
    return [((gradient(-loss) - exact).norm() / exact.norm()).item() for loss in losses]


def test_completion_ratio_has_no_bias_and_the_token_ratio_mostly_less_than_none():
    """In nine toys of ten; of twenty toys' medians at most .81, and .17 at least, fifty times."""
    by_completion, by_token, by_none = torch.tensor([relative_biases(s) for s in range(20)]).T
    assert (by_completion < 1e-10).all()
    assert 0.1 < by_token.median() < 0.9 * by_none.median()
