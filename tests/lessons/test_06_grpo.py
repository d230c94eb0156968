"""Lesson 06: what its text says about numbers, and the direction of its contrasts."""

from dataclasses import replace

import pytest
import torch
from torch import Tensor

from rlcourse import algorithms as A
from rlcourse.checks.asking.calling import call_all
from rlcourse.exercises import get as get_exercise
from rlcourse.policy import ToyPolicy


def toy_batch(policy):
    """32 sentences, right when token 2 occurs in them exactly once."""
    batch = policy.sample(32, generator=torch.Generator().manual_seed(0))
    advantages = A.group_normalized_advantages(right(batch), 32)
    return replace(batch, advantages=advantages, ref_logprobs=batch.old_logprobs)


def right(batch) -> Tensor:
    return (((batch.tokens == 2) & batch.mask).sum(dim=1) == 1).double()


def test_a_token_alone_would_balance_when_28_times_rarer_and_praise_never():
    moved = torch.logspace(-2, 6, 400, dtype=torch.float64)

    def coefficient(advantage, log_moved):
        return A.grpo_gradient_coefficient(
            torch.tensor([advantage]), log_moved, torch.zeros_like(log_moved), beta=0.04
        )

    rarer = -torch.tensor([[1 + 1.095 / 0.04]], dtype=torch.float64).log()
    assert rarer.exp().reciprocal().item() == pytest.approx(28.4, abs=0.1)
    assert coefficient(-1.095, rarer).item() == pytest.approx(0.0, abs=1e-6)
    assert coefficient(0.73, moved.log()[None]).min() > 0.73 - 0.04 - 1e-6


def test_two_tokens_come_to_rest_where_their_coefficients_are_equal_and_not_where_they_are_zero():
    # π = β πref / (c + β − A) makes both coefficients c; the c whose π sum to 1, by bisection.
    A_hat, half = torch.tensor([0.73, -1.095]).double(), torch.tensor([0.5, 0.5]).double()
    low, high = 0.73 - 0.04 + 1e-9, 2.0
    for _ in range(100):
        c = (low + high) / 2
        pi = 0.04 * half / (c + 0.04 - A_hat)
        low, high = (c, high) if pi.sum() > 1 else (low, c)
    both = A.grpo_gradient_coefficient(A_hat, pi.log()[:, None], half.log()[:, None], beta=0.04)
    torch.testing.assert_close(both.flatten(), torch.full((2,), c).double())
    assert c == pytest.approx(0.710, abs=1e-3)
    assert pi[0].item() == pytest.approx(0.989, abs=5e-4)
    assert 0.5 / pi[1].item() == pytest.approx(46, abs=0.5)


def test_renewed_old_logprobs_let_the_policy_run_away_on_one_batch():
    distance = {}
    for renew in (False, True):
        toy, start = (ToyPolicy(vocab_size=3, length=4, seed=1, eos_id=0) for _ in range(2))
        optimizer, batch = torch.optim.Adam(toy.parameters(), lr=0.03), toy_batch(toy)
        for _ in range(100):
            if renew:
                batch = replace(batch, old_logprobs=toy.logprobs(batch).detach())
            A.grpo_step(toy, optimizer, batch, num_iterations=1, beta=0.0)
        distance[renew] = toy.kl(start).item()
    assert distance[True] > 1.5 * distance[False]  # 3 to 18 times, over twelve toys and batches


@pytest.mark.parametrize("seed", range(4))
def test_no_step_of_the_check_blows_up(seed):
    """Where numbers explode, a right step that clips by hand would part from `clip_grad_norm_`."""
    cases = get_exercise("grpo_step").draw_cases(seed, hidden=seed % 2 == 1)
    for outcome in call_all(A.grpo_step, cases, repeat=False):
        left = [value for value in outcome.after.values() if isinstance(value, torch.Tensor)]
        numbers = [torch.tensor(outcome.value), *left]
        assert all(n.isfinite().all() and n.abs().max() < 1e5 for n in numbers)


def test_a_tokens_own_terms_push_up_or_down_by_where_the_reference_stands():
    """The derivative by the probability has the sign of the boxed coefficient, ρ = 1, at 0.6."""
    advantage, at = torch.tensor([0.01]).double(), torch.tensor([[0.6]]).double().log()
    for reference, sign in ((0.5, 1), (0.1, -1), (1e-50, -1)):
        ref = torch.tensor([[reference]]).double().log()
        coefficient = A.grpo_gradient_coefficient(advantage, at, ref, beta=0.02).item()
        by_probability = 0.01 / 0.5 + 0.02 * (reference / 0.6 - 1) / 0.6
        assert coefficient * sign > 0 and by_probability * sign > 0
