"""KL estimators, shaped rewards, GAE and entropy against exact sums over all sentences."""

import pytest
import torch

from rlcourse.algorithms import (
    gae,
    kl_divergence,
    kl_estimates,
    kl_shaped_rewards,
    off_policy_loss,
    reinforce_loss,
    returns_to_go,
    token_entropy,
)
from rlcourse.policy.toy import ToyPolicy

VOCABULARY, LENGTH = 3, 3


def policies(eos_id=0, length=LENGTH, seed=0):
    """A policy and a reference nearby, so that the estimators of the KL are comparable."""
    policy = ToyPolicy(VOCABULARY, length, seed=seed, eos_id=eos_id)
    reference = ToyPolicy(VOCABULARY, length, seed=seed + 1, eos_id=eos_id)
    with torch.no_grad():
        reference.logits.copy_(policy.logits + 0.5 * reference.logits)
    return policy, reference


def scored(policy, reference):
    """All sentences, their probabilities, and their log-probs under both policies."""
    sentences = policy.trajectories()
    return (
        sentences,
        policy.probabilities().detach(),
        policy.logprobs(sentences),
        reference.logprobs(sentences).detach(),
    )


def gradient(scalar, policy):
    return torch.autograd.grad(scalar, policy.logits, retain_graph=True)[0]


def prefixes(policy, sentences):
    """(M, T) row of the logit table that each token was drawn from."""
    prefix, rows = torch.zeros(len(sentences), dtype=torch.long), []
    for token in sentences.tokens.unbind(1):
        rows.append(prefix)
        prefix = policy.child(prefix, token)
    return torch.stack(rows, 1)


# values of the estimators


@pytest.mark.parametrize("eos_id", [0, None])
def test_k1_and_k3_are_unbiased_and_k2_is_not(eos_id):
    biases = []  # of one pair it may be near 0: the least maximum of six sets is 0.12
    for seed in range(4):
        policy, reference = policies(eos_id, seed=seed)
        _, probs, lp, ref = scored(policy, reference)
        exact = policy.kl(reference).item()
        mean = {k: (probs @ kl_estimates(lp, ref, k).sum(1)).item() for k in ("k1", "k2", "k3")}
        assert mean["k1"] == pytest.approx(exact, rel=1e-9)
        assert mean["k3"] == pytest.approx(exact, rel=1e-9)
        assert mean["k2"] == pytest.approx(exact, rel=0.5)
        biases.append(abs(mean["k2"] / exact - 1))
    assert max(biases) > 0.03


def test_exact_kl_obeys_the_chain_rule():
    policy, reference = policies()
    sentences, probs, *_ = scored(policy, reference)
    rows = prefixes(policy, sentences)
    per_token = kl_divergence(policy.logits[rows], reference.logits[rows]) * sentences.mask
    torch.testing.assert_close(probs @ per_token.sum(1), policy.kl(reference))


def test_entropy_obeys_the_chain_rule():
    policy, reference = policies()
    sentences, probs, *_ = scored(policy, reference)
    per_token = token_entropy(policy.logits[prefixes(policy, sentences)]) * sentences.mask
    torch.testing.assert_close(probs @ per_token.sum(1), policy.entropy())


# gradients of the estimators, as a penalty in the loss


@pytest.mark.parametrize("beta", [0.0, 0.3])
def test_k1_as_a_shaped_reward_has_the_gradient_of_the_reverse_kl(beta):
    policy, reference = policies()
    sentences, probs, lp, ref = scored(policy, reference)
    scores = torch.randn(len(probs), generator=torch.Generator().manual_seed(5)).double()
    shaped = kl_shaped_rewards(scores, lp, ref, sentences.mask, beta)
    exact = gradient(policy.expected_reward(scores) - beta * policy.kl(reference), policy)

    def expected_gradient(loss, weights):
        total = sum(p * loss([i], weights) for i, p in enumerate(probs))
        return -gradient(total, policy)

    whole = expected_gradient(
        lambda i, r: reinforce_loss(lp[i], r[i], sentences.mask[i]), shaped.sum(1)
    )
    torch.testing.assert_close(whole, exact)
    # the same from only the rewards still to come: the past does not depend on the action
    to_go = expected_gradient(
        lambda i, r: off_policy_loss(lp[i], lp[i].detach(), r[i], sentences.mask[i]),
        returns_to_go(shaped, sentences.mask),
    )
    torch.testing.assert_close(to_go, exact)


# GAE


def value_table(policy, rewards, sentences, probs):
    """V(prefix) = E[R | prefix], for every row of the logit table."""
    rows = prefixes(policy, sentences)
    values = torch.zeros(len(policy.logits)).double()
    for row in range(len(values)):
        through = ((rows == row) & sentences.mask).any(1)
        if through.any():
            values[row] = probs[through] @ rewards[through] / probs[through].sum()
    return values


def gae_gradient(values_of, lam):
    """(expected gradient with GAE advantages, exact gradient) for a reward at the end."""
    policy, reference = policies()
    sentences, probs, lp, _ = scored(policy, reference)
    rewards = torch.randn(len(probs), generator=torch.Generator().manual_seed(6)).double()
    exact = gradient(policy.expected_reward(rewards), policy)
    table = values_of(policy, rewards, sentences, probs)
    per_token = kl_shaped_rewards(rewards, lp, lp, sentences.mask, beta=0.0)
    values = table[prefixes(policy, sentences)]
    advantages, _ = gae(per_token, values, sentences.mask, gamma=1.0, lam=lam)
    total = sum(
        p * off_policy_loss(lp[[i]], lp[[i]].detach(), advantages[[i]], sentences.mask[[i]])
        for i, p in enumerate(probs)
    )
    return -gradient(total, policy), exact


def random_values(policy, rewards, sentences, probs):
    return torch.randn(len(policy.logits), generator=torch.Generator().manual_seed(8)).double()


@pytest.mark.parametrize("lam", [0.0, 0.5, 0.95, 1.0])
def test_gae_with_the_true_values_is_unbiased_for_every_lambda(lam):
    estimate, exact = gae_gradient(value_table, lam)
    torch.testing.assert_close(estimate, exact)


def test_wrong_values_bias_gae_unless_lambda_is_one():
    estimate, exact = gae_gradient(random_values, 1.0)
    torch.testing.assert_close(estimate, exact)
    estimate, exact = gae_gradient(random_values, 0.0)
    assert (estimate - exact).norm() > 0.1 * exact.norm()
