"""The policy gradient of a softmax bandit, estimated from samples."""

from collections.abc import Iterator

import torch
from torch import Tensor

from rlcourse.algorithms.policy_gradient import (
    exact_policy_gradient,
    monte_carlo_policy_gradient,
    score_function,
)
from rlcourse.checks.calling import Case
from rlcourse.checks.cases import CaseSampler, tensor
from rlcourse.checks.exercise import Exercise, Mistake
from rlcourse.exercises.policy_gradient.score_function import WORKED


def _monte_carlo_cases(draw: CaseSampler) -> Iterator[Case]:
    def case(label: str, logits: Tensor, actions: Tensor, rewards: Tensor | None = None) -> Case:
        rewards = draw.rewards(len(logits), logits.dtype) if rewards is None else rewards
        return Case(label, {"logits": logits, "rewards": rewards, "actions": actions})

    three = torch.tensor([1, 0]), tensor([0.0, 1.0, 0.0])
    yield case("worked: B, then A, only B pays", WORKED, *three)
    proportional = torch.tensor([0, 1, 0, 2, 0, 1, 0, 2, 0, 1])
    yield case("actions in proportion to π: the estimate is exact", WORKED, proportional)
    yield case("one action", draw.normal(3), torch.tensor([1]))
    yield case("the same action again and again", draw.normal(4), torch.tensor([2, 2, 2]))
    size = draw.size(3, 4)
    yield case("as many samples as actions", draw.normal(size), draw.integers(size, high=size))
    for n in (draw.size(5, 7), draw.size(8, 12)):
        yield case(f"{n} samples of 4 actions", draw.normal(4), draw.integers(n, high=4))
    yield case("fewer samples than actions", draw.normal(6), draw.integers(3, high=6))
    binary = draw.binary_rewards(4)
    yield case("rewards of 0 and 1", draw.normal(4), draw.integers(6, high=4), binary)
    zeros = torch.zeros(3).double()
    yield case("no reward at all", draw.normal(3), draw.integers(5, high=3), zeros)
    yield case("float32", draw.normal(4).float(), draw.integers(6, high=4))


def _scores(logits: Tensor, actions: Tensor) -> Tensor:
    return torch.eye(len(logits), dtype=logits.dtype)[actions] - logits.softmax(0)


def _mc(logits, rewards, actions):
    return monte_carlo_policy_gradient(logits, rewards, actions)


def _mc_weighted_again(logits, rewards, actions):
    weights = rewards[actions] * logits.softmax(0)[actions]
    return (weights[:, None] * _scores(logits, actions)).mean(0)


def _mc_not_looked_up(logits, rewards, actions):
    return (rewards[:, None] * _scores(logits, actions)).mean(0)


def _mc_along_actions(logits, rewards, actions):
    return (rewards * _scores(logits, actions)).mean(0)


def _mc_expected_baseline(logits, rewards, actions):
    gained = rewards[actions] - logits.softmax(0) @ rewards
    return (gained[:, None] * _scores(logits, actions)).mean(0)


def _mc_importance(logits, rewards, actions):
    gained = (rewards / logits.softmax(0))[actions]
    return (gained[:, None] * _scores(logits, actions)).mean(0)


def _mc_no_normalizer(logits, rewards, actions):
    scores = _scores(logits, actions) + logits.softmax(0) - logits.exp()
    return (rewards[actions, None] * scores).mean(0)


def _mc_own_baseline(logits, rewards, actions):
    gained = rewards[actions]
    return ((gained - gained.mean())[:, None] * _scores(logits, actions)).mean(0)


def _mc_lost_duplicates(logits, rewards, actions):
    gained = torch.zeros_like(logits)
    gained[actions] += rewards[actions] / len(actions)
    return gained - logits.softmax(0) * rewards[actions].mean()


def _mc_by_loop(logits, rewards, actions):
    total = torch.zeros_like(logits)
    for action in actions.tolist():
        total = total + rewards[action] * score_function(logits, action)
    return total / len(actions)


def _mc_by_autograd(logits, rewards, actions):
    leaf = logits.detach().clone().requires_grad_()
    (rewards[actions] * leaf.log_softmax(0)[actions]).mean().backward()
    return leaf.grad


def _mc_by_counts(logits, rewards, actions):
    frequency = torch.bincount(actions, minlength=len(logits)).to(logits.dtype) / len(actions)
    return frequency * rewards - logits.softmax(0) * (frequency @ rewards)


def _mc_mean_of_rewarded(logits, rewards, actions):
    gained = rewards[actions]
    return (gained[:, None] * _scores(logits, actions)).sum(0) / (gained != 0).sum().clamp(min=1)


EXERCISE = Exercise(
    reference=monte_carlo_policy_gradient,
    lesson="02_policy_gradient",
    section="From samples",
    points=3,
    difficulty=2,
    minutes=15,
    cases=_monte_carlo_cases,
    oracle=_mc_by_autograd,
    mistakes=(
        Mistake(
            "a sum over the samples in place of a mean",
            lambda logits, rewards, actions: _mc(logits, rewards, actions) * len(actions),
            "An estimate of an expectation is a mean: with twice the samples it gets more exact, "
            "not twice as large.",
        ),
        Mistake(
            "samples weighted by π once more",
            _mc_weighted_again,
            "Likely actions already come up more often among the samples: that *is* the weight π.",
        ),
        Mistake(
            "rewards that were not looked up by action",
            _mc_not_looked_up,
            "`rewards` has an entry per action, not per sample: the reward of each sample is "
            "`rewards[actions]`.",
        ),
        Mistake(
            "rewards laid along the actions, each score's entry times its own action's reward",
            _mc_along_actions,
            "A sample earns one number, `rewards[actions]`, and that multiplies its whole score: "
            "(n, 1) against (n, V).",
        ),
        Mistake(
            "an estimate that subtracts the expected reward π·R from every reward",
            _mc_expected_baseline,
            "That is a baseline, and lesson 03 is about it. In the exact gradient π·R appears "
            "because the scores were summed over all actions; here they are sampled.",
        ),
        Mistake(
            "rewards divided by the probability of the action",
            _mc_importance,
            "That would undo the sampling: the actions came from π, so the plain mean over them "
            "is weighted by π already, as it should be.",
        ),
        Mistake(
            "a sum divided by n − 1",
            lambda logits, rewards, actions: (
                _mc(logits, rewards, actions) * len(actions) / (len(actions) - 1)
            ),
            "n − 1 belongs to a variance; a mean divides by n.",
        ),
        Mistake(
            "exponentials that are not divided by their sum",
            _mc_no_normalizer,
            "e to a logit is a probability only if the logits happen to be log-probabilities: "
            "divide by the sum, or call softmax.",
        ),
        Mistake(
            "the estimate with its sign turned",
            lambda logits, rewards, actions: -_mc(logits, rewards, actions),
            "This estimates the gradient of the expected reward, which is to grow; only a loss is "
            "its negative.",
        ),
        Mistake(
            "rewards at the sampled actions, without subtracting π",
            lambda logits, rewards, actions: (
                rewards[actions, None] * (_scores(logits, actions) + logits.softmax(0))
            ).mean(0),
            "∇ log π(a) is one-hot *minus π*: every sample also lowers all the other actions.",
        ),
        Mistake(
            "a sum divided by the number of actions V in place of the number of samples n",
            lambda logits, rewards, actions: (
                _mc(logits, rewards, actions) * len(actions) / len(logits)
            ),
            "The mean runs over samples: divide by `len(actions)`.",
        ),
        Mistake(
            "an estimate that subtracts the samples' mean reward",
            _mc_own_baseline,
            "That mean contains each sample itself, which shrinks the expected gradient by "
            "(n−1)/n; baselines come in lesson 03, this is the plain estimate.",
        ),
        Mistake(
            "a sum in which an action sampled twice counts once",
            _mc_lost_duplicates,
            "`x[index] += y` keeps one of several additions to the same place: use `index_add`, "
            "or a row per sample and then the mean.",
        ),
        Mistake(
            "the mean reward times the mean score",
            lambda logits, rewards, actions: (
                rewards[actions].mean() * _scores(logits, actions).mean(0)
            ),
            "The mean of a product is no product of means: which action earned which reward is "
            "all there is to learn from.",
        ),
        Mistake(
            "the exact gradient, which ignores the samples",
            lambda logits, rewards, actions: exact_policy_gradient(logits, rewards),
            "A language model has too many actions to sum over: use only the ones in `actions`.",
        ),
        Mistake(
            "a sum divided by the number of samples that earned something",
            _mc_mean_of_rewarded,
            "All n samples were drawn, and those that earn 0 count in the mean as well: divide by "
            "n.",
            telling=2,
        ),
    ),
    alternatives=(_mc_by_loop, _mc_by_autograd, _mc_by_counts),
    hints=(
        "An expectation under π is approximated by a mean over samples from π.",
        "For each sample: its reward `rewards[action]` times its score, one-hot minus π. Then the "
        "mean over samples.",
        "A row of scores per sample, (n, V):\n\n"
        "    probs = logits.softmax(dim=-1)\n"
        "    scores = F.one_hot(actions, num_classes=len(logits)) - probs\n"
        "    return (rewards[actions, None] * ...).mean(dim=...)",
    ),
)
