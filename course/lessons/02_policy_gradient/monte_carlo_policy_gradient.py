"""The policy gradient of a softmax bandit, estimated from samples."""

from collections.abc import Iterator

import torch
from torch import Tensor

from rlcourse.algorithms.policy_gradient import (
    exact_policy_gradient,  # noqa: F401  (the page names it)
    monte_carlo_policy_gradient,
    score_function,
)
from rlcourse.checks.declaring import Case, CaseSampler, tensor
from rlcourse.courses.modules import beside

WORKED = beside(__file__, "score_function.py").WORKED


def cases(draw: CaseSampler) -> Iterator[Case]:
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


def _mc_mean_of_rewarded(logits, rewards, actions):
    gained = rewards[actions]
    return (gained[:, None] * _scores(logits, actions)).sum(0) / (gained != 0).sum().clamp(min=1)


alternatives = (_mc_by_loop, _mc_by_autograd)
oracle = _mc_by_autograd
