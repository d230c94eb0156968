"""Functions from a notebook stand in for the library's, and say so when they cannot."""

import pytest
import torch

from rlcourse import algorithms
from rlcourse.errors import UserError
from rlcourse.training import train
from rlcourse.training.functions.calling import call_by_name, call_estimator, call_loss, call_reward

N, T = 4, 3


@pytest.fixture
def available():
    logprobs = torch.randn(N, T, requires_grad=True)
    return {
        "logprobs": logprobs,
        "old_logprobs": logprobs.detach(),
        "ref_logprobs": logprobs.detach(),
        "advantages": torch.tensor([1.0, -1.0, 0.5, 0.0]),
        "rewards": torch.tensor([1.0, -1.0, 0.5, 0.0]),
        "mask": torch.ones(N, T, dtype=torch.bool),
        "clip": 0.2,
        "beta": 0.0,
    }


def test_a_function_gets_what_its_parameters_name_in_any_order():
    def subtract(b, a, factor=2):
        return factor * (a - b)

    assert call_by_name(subtract, "the loss", a=5, b=3, unused=7) == 4
    assert call_by_name(subtract, "the loss", a=5, b=3, factor=1) == 2


def unknown_parameter(logprob, mask):
    return logprob.sum()


def unfinished(logprobs, mask):
    raise NotImplementedError


def per_token(logprobs, mask):
    return -logprobs


def a_float(logprobs):
    return 1.0


def detached(logprobs):
    return -logprobs.detach().sum()


@pytest.mark.parametrize(
    ("loss", "sentence"),
    [
        (
            unknown_parameter,
            "asks for 'logprob', which the trainer does not have: did you mean 'lo",
        ),
        (unfinished, "the loss unfinished is not written yet: finish unfinished first"),
        (per_token, "must return one number as a tensor, not shape (4, 3)"),
        (a_float, "must return one number as a tensor, not float"),
        (detached, "carries no gradient"),
    ],
)
def test_a_loss_that_cannot_be_used_is_told_why(available, loss, sentence):
    with pytest.raises(UserError) as error:
        call_loss(loss, **available)
    assert sentence in str(error.value)


def test_estimators_of_the_lessons_and_token_level_ones_can_be_called(available):
    rewards, mask = available["rewards"], available["mask"]

    def token_level(rewards, mask):
        return rewards[:, None] * mask

    group = call_estimator(algorithms.group_mean_advantages, rewards, mask, {"group_size": 2})
    assert group.tolist() == [1.0, -1.0, 0.25, -0.25]
    assert call_estimator(token_level, rewards, mask, {"group_size": 2}).shape == (N, T)


def test_an_estimator_that_cannot_be_used_is_told_why(available):
    rewards, mask = available["rewards"], available["mask"]
    for estimator, sentence in (
        (lambda rewards: rewards.mean(), "must return a tensor of shape (4,), not"),
        (lambda rewards: rewards * 0 / rewards, "returned nan at index [3]"),
        (unfinished, "asks for 'logprobs'"),
    ):
        with pytest.raises(UserError) as error:
            call_estimator(estimator, rewards, mask, {"group_size": 2})
        assert sentence in str(error.value)


def test_a_reward_must_be_one_finite_number_a_completion():
    completions = ["a", "bb"]
    lengths = call_reward(
        lambda completions: torch.tensor([len(c) for c in completions]), completions=completions
    )
    assert lengths.tolist() == [1.0, 2.0] and lengths.dtype == torch.float32
    for bad in (lambda: [1, 2], lambda: torch.zeros(3), lambda: torch.tensor([0.0, torch.inf])):
        with pytest.raises(UserError, match="must return a tensor of 2 finite numbers"):
            call_reward(bad, completions=completions)


def test_the_steps_of_the_lessons_train_without_a_reference(policy, task, recipe):
    for step in (algorithms.reinforce_step, algorithms.grpo_step):
        settings = recipe(eval_problems=0, num_iterations=2)
        run = train(settings, policy=policy, task=task, step=step, progress=False)
        assert all(torch.isfinite(torch.tensor(m["loss"])) for m in run.metrics)


def test_a_step_that_returns_nothing_is_told_what_it_must_return(policy, task, recipe):
    def lazy(policy, optimizer, batch):
        return None

    with pytest.raises(UserError, match="the step lazy must return its loss as a finite number"):
        train(recipe(), policy=policy, task=task, step=lazy, progress=False)
