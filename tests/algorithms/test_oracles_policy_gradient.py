"""Estimators of the policy gradient against the exact gradient of an enumerable language model.

An expectation over samples is taken as a sum over all sentences, so that unbiasedness is an
equality and not a matter of patience.
"""

from dataclasses import replace
from itertools import product

import pytest
import torch

from rlcourse.algorithms import (
    exact_policy_gradient,
    grpo_loss,
    grpo_step,
    importance_weights,
    monte_carlo_policy_gradient,
    off_policy_loss,
    ppo_clip_loss,
    reinforce_loss,
    reinforce_step,
)
from rlcourse.policy.toy import ToyPolicy


def normal(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed)).double()


class World:
    """A toy policy, all its sentences, a reward for each, and the exact gradient of J."""

    def __init__(self, seed=0, eos_id=0, **options):
        self.policy = ToyPolicy(seed=seed, eos_id=eos_id, **options)
        self.sentences = self.policy.trajectories()
        self.mask = self.sentences.mask
        self.probs = self.policy.probabilities().detach()
        self.rewards = normal(len(self.probs), seed=seed + 100) + 0.5

    def logprobs(self):
        return self.policy.logprobs(self.sentences)

    def gradient(self, scalar):
        return torch.autograd.grad(scalar, self.policy.logits, retain_graph=True)[0]

    def exact_gradient(self, rewards=None):
        rewards = self.rewards if rewards is None else rewards
        return self.gradient(self.policy.expected_reward(rewards))

    def expected_gradient(self, loss_of_rows, group_size=1, weights=None):
        """E[∇ loss] over all groups of `group_size` independent sentences, by summation.

        `loss_of_rows` maps row numbers to the loss of that batch.
        """
        weights = self.probs if weights is None else weights
        total = 0.0
        for rows in product(range(len(self.probs)), repeat=group_size):
            total = total + weights[list(rows)].prod() * loss_of_rows(list(rows))
        return self.gradient(total)


@pytest.fixture(params=[0, 1])
def world(request):
    return World(request.param)


# REINFORCE and baselines


def test_reinforce_is_unbiased(world):
    lp = world.logprobs()
    expected = world.expected_gradient(
        lambda rows: reinforce_loss(lp[rows], world.rewards[rows], world.mask[rows])
    )
    torch.testing.assert_close(-expected, world.exact_gradient())


# the softmax bandit


@pytest.mark.parametrize("seed", range(3))
def test_exact_bandit_gradient_is_autograds(seed):
    logits = normal(5, seed=seed).requires_grad_()
    rewards = normal(5, seed=seed + 50)
    (expected,) = torch.autograd.grad(logits.softmax(0) @ rewards, logits)
    torch.testing.assert_close(exact_policy_gradient(logits.detach(), rewards), expected)


@pytest.mark.parametrize("n", [1, 2, 3])
def test_monte_carlo_gradient_is_unbiased_and_its_variance_falls_as_one_over_n(n):
    logits, rewards = normal(3), normal(3, seed=1)
    probs, exact = logits.softmax(0), exact_policy_gradient(normal(3), normal(3, seed=1))

    def moments(size):
        mean, variance = torch.zeros(3).double(), 0.0
        for actions in product(range(3), repeat=size):
            actions = torch.tensor(actions)
            estimate = monte_carlo_policy_gradient(logits, rewards, actions)
            mean += probs[actions].prod() * estimate
            variance += probs[actions].prod() * (estimate - exact).square().sum()
        return mean, variance

    mean, variance = moments(n)
    torch.testing.assert_close(mean, exact)
    torch.testing.assert_close(variance, moments(1)[1] / n)


# old samples


def test_sequence_weights_make_old_samples_unbiased(world):
    """E_old[w R] = J(θ), so its gradient is exact however far the policies are apart."""
    old = ToyPolicy(seed=9, eos_id=0)
    lp, old_lp = world.logprobs(), old.logprobs(world.sentences).detach()
    old_probs = old.probabilities().detach()
    weights = importance_weights(lp, old_lp, world.mask, level="sequence")
    torch.testing.assert_close(old_probs @ weights, torch.tensor(1.0).double())
    torch.testing.assert_close(weights.detach(), world.probs / old_probs)
    gradient = world.gradient(old_probs @ (weights * world.rewards))
    torch.testing.assert_close(gradient, world.exact_gradient())


def test_off_policy_loss_is_unbiased_for_one_token():
    world, old = World(0, eos_id=None, length=1, vocab_size=5), ToyPolicy(5, 1, seed=9)
    lp, old_lp = world.logprobs(), old.logprobs(world.sentences).detach()
    expected = world.expected_gradient(
        lambda rows: off_policy_loss(lp[rows], old_lp[rows], world.rewards[rows], world.mask[rows]),
        weights=old.probabilities().detach(),
    )
    torch.testing.assert_close(-expected, world.exact_gradient())


def test_one_row_of_grpo_or_ppo_weighs_a_reward_by_the_length_of_its_sentence(world):
    """Averaging over tokens is maximizing E[R/|y|], exactly."""
    lp = world.logprobs()
    old, mask = lp.detach(), world.mask
    losses = [
        lambda r: grpo_loss(lp[r], old[r], old[r], world.rewards[r], mask[r], beta=0.0),
        lambda r: ppo_clip_loss(lp[r], old[r], world.rewards[r], mask[r])[0],
    ]
    for loss in losses:
        torch.testing.assert_close(
            -world.expected_gradient(loss), world.exact_gradient(world.rewards / mask.sum(1))
        )


# steps


def batch_of(world, **fields):
    return replace(world.sentences, rewards=world.rewards, **fields)


def test_reinforce_step_is_one_clipped_gradient_step():
    for max_norm in (1e9, 0.01):
        world = World(4)
        before = world.policy.logits.detach().clone()
        batch = batch_of(world)
        loss = reinforce_loss(world.logprobs(), world.rewards, world.mask)
        gradient = world.gradient(loss)
        world.policy.logits.grad = torch.full_like(before, 7.0)  # left over from elsewhere
        optimizer = torch.optim.SGD(world.policy.parameters(), lr=0.1)
        returned = reinforce_step(world.policy, optimizer, batch, max_grad_norm=max_norm)
        assert isinstance(returned, float) and returned == pytest.approx(loss.item())
        expected = gradient * min(1.0, max_norm / gradient.norm().item())
        torch.testing.assert_close(
            before - world.policy.logits.detach(), 0.1 * expected, rtol=1e-3, atol=1e-9
        )


class CountingPolicy(torch.nn.Module):
    """A policy that can only score, and counts how often it is asked to."""

    def __init__(self, policy):
        super().__init__()
        self.inner, self.calls = policy, 0

    def logprobs(self, batch):
        self.calls += 1
        return self.inner.logprobs(batch)


def test_grpo_step_scores_once_per_update_and_keeps_the_old_logprobs():
    world, reference = World(6), ToyPolicy(seed=6, eos_id=0)
    advantages = normal(15, seed=3)
    old = world.logprobs().detach()
    rollouts = batch_of(
        world, old_logprobs=old, ref_logprobs=reference.logprobs(world.sentences).detach(),
        advantages=advantages,
    )  # fmt: skip
    twin, counting = World(6).policy, CountingPolicy(world.policy)
    step = torch.optim.SGD(counting.parameters(), lr=2.0)
    losses = grpo_step(
        counting, step, rollouts, num_iterations=4, clip=0.1, beta=0.3, max_grad_norm=1e9
    )
    assert counting.calls == 4 and len(losses) == 4

    expected = []
    for _ in range(4):
        loss = grpo_loss(
            twin.logprobs(world.sentences), old, rollouts.ref_logprobs, advantages, world.mask,
            clip=0.1, beta=0.3,
        )  # fmt: skip
        (gradient,) = torch.autograd.grad(loss, twin.logits)
        with torch.no_grad():
            twin.logits -= 2.0 * gradient
        expected.append(loss.item())
    assert losses == pytest.approx(expected)
    torch.testing.assert_close(world.policy.logits, twin.logits)
    assert torch.equal(rollouts.old_logprobs, old)


def test_grpo_step_clips_the_gradient_norm():
    world = World(6)
    old = world.logprobs().detach()
    rollouts = batch_of(world, old_logprobs=old, ref_logprobs=old, advantages=normal(15))
    before = world.policy.logits.detach().clone()
    step = torch.optim.SGD(world.policy.parameters(), lr=1.0)
    grpo_step(world.policy, step, rollouts, num_iterations=1, max_grad_norm=1e-3)
    assert (world.policy.logits - before).norm().item() == pytest.approx(1e-3, rel=1e-2)
