"""Work that is left out of the forward pass leaves values and gradients as they were."""

from dataclasses import replace
from functools import partial

import pytest
import torch

from rlcourse.algorithms import grpo_loss, ppo_clip_loss, reinforce_loss
from rlcourse.training.forward import rows_with_gradient, shared_prompt_logprobs
from rlcourse.training.loop import batch_loss
from rlcourse.training.methods import METHODS, resolved
from rlcourse.training.micro_batches import MicroBatches


def learned(policy, batch, loss_of, rows=None, size=None):
    """Loss and gradient that a step leaves in the policy."""
    learning = MicroBatches(policy, size)
    loss, *_ = learning.backward(partial(shared_prompt_logprobs, policy), batch, loss_of, rows)
    return loss, torch.cat([p.grad.flatten() for p in policy.parameters()])


PROMPTS = ["1?", "7 7?", "3 3 3?", "12?"]  # of different lengths: left padding
REWARDS = torch.tensor([1.0, 1, 1, 1, 0, 1, 0, 0, 0, 0, 0, 0, 1, 0, 1, 1])


@pytest.fixture
def rollouts(policy):
    sampled = policy.sample(
        PROMPTS, group_size=4, max_tokens=9, generator=torch.Generator().manual_seed(3)
    )
    assert not sampled.mask.all() and not sampled.prompt_mask.all()
    return replace(sampled, rewards=REWARDS)


def gradients(policy, scalar):
    return torch.cat([g.flatten() for g in torch.autograd.grad(scalar, list(policy.parameters()))])


@pytest.mark.parametrize("order", ["grouped", "shuffled"])
@pytest.mark.parametrize("temperature", [1.0, 0.7])
def test_reading_prompts_once_changes_neither_logprobs_nor_gradient(
    policy, rollouts, order, temperature
):
    policy.double()
    batch = replace(rollouts, temperature=temperature)
    if order == "shuffled":
        batch = batch.rows(torch.randperm(len(batch), generator=torch.Generator().manual_seed(1)))
    weights = torch.randn(batch.mask.shape, dtype=torch.float64)
    plain, shared = policy.logprobs(batch), shared_prompt_logprobs(policy, batch)
    torch.testing.assert_close(shared, plain, rtol=1e-9, atol=1e-9)
    one = gradients(policy, (shared * weights).sum())
    other = gradients(policy, (plain * weights).sum())
    assert (one - other).norm() < 1e-6 * other.norm()  # Llama's norms compute in float32


def test_prompts_that_nobody_shares_are_scored_as_ever(policy, rollouts):
    batch = rollouts.rows(torch.arange(0, 16, 4))
    torch.testing.assert_close(shared_prompt_logprobs(policy, batch), policy.logprobs(batch))


@pytest.mark.parametrize("algorithm", ["reinforce", "rloo", "grpo"])
def test_rows_without_gradient_can_be_left_out(policy, rollouts, recipe, algorithm):
    method = METHODS[algorithm]
    advantages = rollouts.rewards
    if method.advantages:
        advantages = resolved(method.advantages)(rollouts.rewards, 4)
    batch = replace(rollouts, advantages=advantages)

    def loss_of(logprobs):
        return batch_loss(logprobs, method, batch, recipe(algorithm))

    rows, _ = rows_with_gradient(loss_of, batch)
    assert torch.equal(rows, advantages != 0) and not rows.all()
    skipping, gradient = learned(policy, batch, loss_of, rows)
    plain, _ = loss_of(policy.logprobs(batch))
    torch.testing.assert_close(skipping, plain.detach())
    torch.testing.assert_close(gradient, gradients(policy, plain), rtol=1e-3, atol=1e-6)


def test_a_kl_penalty_gives_every_row_a_gradient(policy, rollouts):
    batch = replace(rollouts, advantages=torch.zeros(16), ref_logprobs=rollouts.old_logprobs - 0.1)

    def loss_of(logprobs):
        args = (logprobs, batch.old_logprobs, batch.ref_logprobs, batch.advantages, batch.mask)
        return grpo_loss(*args, beta=0.1), None

    assert rows_with_gradient(loss_of, batch)[0].all()


def test_a_loss_that_reaches_the_policy_another_way_is_given_every_row(policy, rollouts):
    weight = next(policy.parameters())
    rows, _ = rows_with_gradient(lambda logprobs: ((weight**2).sum(), None), rollouts)
    assert rows.all()


def test_where_no_row_has_a_gradient_one_is_kept_so_that_the_step_is_a_step(policy, rollouts):
    batch = replace(rollouts, advantages=torch.zeros(16))

    def loss_of(logprobs):
        return reinforce_loss(logprobs, batch.advantages, batch.mask), None

    rows, _ = rows_with_gradient(loss_of, batch)
    assert rows.tolist() == [True] + [False] * 15
    assert learned(policy, batch, loss_of, rows)[1].abs().max() == 0


def test_the_loss_is_asked_where_the_ratio_is_one(policy, rollouts):
    batch = replace(rollouts, advantages=torch.ones(16))

    def loss_of(logprobs):
        assert torch.equal(logprobs, batch.old_logprobs)
        return ppo_clip_loss(logprobs, batch.old_logprobs, batch.advantages, batch.mask)

    assert rows_with_gradient(loss_of, batch)[0].all()


def test_a_policy_that_scores_in_its_own_way_is_asked_for_it(policy, rollouts):
    class Stranger(type(policy)):
        def logprobs(self, rollouts):
            return torch.full(rollouts.mask.shape, -7.0)

    class Student(type(policy)):
        @staticmethod
        def token_logprobs(logits, tokens, temperature=1.0):
            return torch.full(tokens[:, 1:].shape, -7.0, dtype=logits.dtype)

    expected = -7.0 * rollouts.mask
    student = shared_prompt_logprobs(Student(policy.model, policy.tokenizer), rollouts)
    torch.testing.assert_close(student, expected)
    stranger = shared_prompt_logprobs(Stranger(policy.model, policy.tokenizer), rollouts)
    assert (stranger == -7.0).all()
