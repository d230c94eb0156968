"""Work that is left out of the forward pass leaves values and gradients as they were."""

from dataclasses import replace
from functools import partial

import pytest
import torch
from echo import by_length

from rlcourse import algorithms
from rlcourse.algorithms import reinforce_loss
from rlcourse.training import train
from rlcourse.training.networks.forward import shared_prompt_logprobs
from rlcourse.training.networks.micro_batches import MicroBatches
from rlcourse.training.online.objective import Objective
from rlcourse.training.recipes.methods import METHODS, resolved

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


def spy(policy, read_rows):
    def read(piece):
        read_rows.append(len(piece))
        return shared_prompt_logprobs(policy, piece)

    return read


@pytest.mark.parametrize("algorithm", ["reinforce", "rloo", "grpo"])
def test_rows_without_gradient_are_left_out(policy, rollouts, recipe, algorithm):
    method = METHODS[algorithm]
    advantages = rollouts.rewards
    if method.advantages:
        advantages = resolved(method.advantages)(rollouts.rewards, 4)
    batch = replace(rollouts, advantages=advantages)
    loss_of = partial(Objective(method, recipe(algorithm)).loss, batch=batch)
    made = MicroBatches(policy).backward(spy(policy, sizes := []), batch, loss_of, fresh=True)
    assert torch.equal(made.rows, advantages != 0) and sizes == [int(made.rows.sum())] != [16]
    gradient = torch.cat([p.grad.flatten() for p in policy.parameters()])
    plain, _ = loss_of(policy.logprobs(batch))
    torch.testing.assert_close(made.loss, plain.detach())
    torch.testing.assert_close(gradient, gradients(policy, plain), rtol=1e-3, atol=1e-6)


@pytest.mark.parametrize("size", [None, 3])
def test_a_loss_that_looks_past_the_advantages_gets_every_row_it_gives_a_gradient(
    policy, rollouts, size
):
    """Which rows are read first is a guess; the loss decides."""
    batch = replace(rollouts, advantages=(torch.arange(16) == 5).float())

    def loss_of(logprobs):
        return ((logprobs.exp() - 0.3).square() * batch.mask).mean(), None

    made = MicroBatches(policy, size).backward(spy(policy, []), batch, loss_of, fresh=True)
    assert made.rows.all()
    gradient = torch.cat([p.grad.flatten() for p in policy.parameters()])
    plain, _ = loss_of(policy.logprobs(batch))
    torch.testing.assert_close(gradient, gradients(policy, plain), rtol=1e-3, atol=1e-6)


def test_a_loss_that_reaches_the_policy_another_way_reaches_it(policy, rollouts):
    weight = next(policy.parameters())
    made = MicroBatches(policy).backward(
        spy(policy, []), rollouts, lambda logprobs: ((weight**2).sum(), None), fresh=True
    )
    torch.testing.assert_close(weight.grad, 2 * weight.detach())
    assert not made.gradient.any()


@pytest.mark.parametrize("size", [None, 3])
def test_where_no_row_has_a_gradient_one_is_read_so_that_the_step_is_a_step(policy, rollouts, size):
    batch = replace(rollouts, advantages=torch.zeros(16))

    def loss_of(logprobs):
        return reinforce_loss(logprobs, batch.advantages, batch.mask), None

    MicroBatches(policy, size).backward(spy(policy, sizes := []), batch, loss_of, fresh=True)
    assert sizes == [1] and all(not p.grad.any() for p in policy.parameters())


@pytest.mark.parametrize("changes", [{}, {"micro_batch": 3}, {"minibatches": 2}, {"beta": 0.1}])
def test_a_function_of_a_student_is_called_once_an_update(
    policy, warm, task, recipe, capsys, changes
):
    def grpo_loss(logprobs, old_logprobs, ref_logprobs, advantages, mask, clip, beta):
        print("called")
        return algorithms.grpo_loss(
            logprobs, old_logprobs, ref_logprobs, advantages, mask, clip, beta
        )

    settings = recipe("grpo", steps=2, num_iterations=2, eval_problems=0, **changes)
    options = {"policy": warm, "task": task, "reward": by_length, "progress": False}
    train(settings, loss=grpo_loss, **options)
    updates = 2 * 2 * settings.minibatches
    assert capsys.readouterr().out.count("called") == updates


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
