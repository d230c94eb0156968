"""Advantages against the mean of the group."""

from collections.abc import Iterator

import torch
from torch import Tensor

from rlcourse.checks.declaring import Case, CaseSampler, Sketch, tensor


def cases(draw: CaseSampler) -> Iterator[Case]:
    def case(label: str, rewards: Tensor, group_size: int) -> Case:
        return Case(label, {"rewards": rewards, "group_size": group_size})

    yield case("worked: two questions, two completions each", tensor([1.0, 0, 4, 2]), 2)
    yield case("worked: 9 of 10 right", tensor([1.0] * 9 + [0.0]), 10)
    yield case("worked: 15 of 16 right", tensor([1.0] * 15 + [0.0]), 16)
    yield case("worked: 1 of 16 right", tensor([1.0] + [0.0] * 15), 16)
    few, many = draw.size(2, 3), draw.size(4, 5)
    yield case("fewer groups than completions", draw.rewards(few * many), many)
    yield case("more groups than completions", draw.rewards(few * many), few)
    side = draw.size(3, 4)
    yield case("as many groups as completions in each", draw.rewards(side * side), side)
    yield case("one question", draw.rewards(many), many)
    yield case("rewards of 0 and 1", draw.binary_rewards(3 * many), many)
    equal = draw.rewards(few).repeat_interleave(many)
    yield case("equal rewards within each group", equal, many)
    yield case("rewards far from 0", 100 + draw.rewards(2 * many), many)
    yield case("groups of one", draw.rewards(few + 1), 1)
    yield case("one group of one", draw.rewards(1), 1)
    yield case("float32", draw.rewards(2 * many, torch.float32), many)


def grouped(rewards: Tensor, group_size: int) -> Tensor:
    return rewards.reshape(-1, group_size)


def _in_place(rewards, group_size):
    groups = rewards.view(-1, group_size)
    groups -= groups.mean(1, keepdim=True)
    return rewards.clone()


def _group_by_loop(rewards, group_size):
    advantages = []
    for i, reward in enumerate(rewards):
        start = i - i % group_size
        advantages.append(reward - sum(rewards[start : start + group_size]) / group_size)
    return torch.stack(advantages)


def _group_by_repeat(rewards, group_size):
    means = rewards.double().unflatten(0, (-1, group_size)).mean(1)
    return (rewards.double() - means.repeat_interleave(group_size)).to(rewards.dtype)


def line_by_line(rewards, group_size):
    groups = rewards.reshape(-1, group_size)
    baseline = groups.mean(1, keepdim=True)
    advantages = groups - baseline
    return advantages.flatten()


def spread(groups, correction):
    """The standard deviation of each group, with a small constant; that alone for a small one."""
    if groups.shape[1] <= correction:
        return 1e-6
    return groups.std(1, correction=correction, keepdim=True) + 1e-6


sketch = Sketch(line_by_line, spread)
alternatives = (_group_by_loop, _group_by_repeat)
