"""Rewards normalized within their group."""

from collections.abc import Iterator

import torch

from rlcourse.algorithms.baselines import leave_one_out_advantages
from rlcourse.checks.declaring import Case, CaseSampler, Sketch, tensor


def cases(draw: CaseSampler) -> Iterator[Case]:
    def case(label, rewards, group_size, **more) -> Case:
        return Case(label, {"rewards": rewards, "group_size": group_size, **more})

    yield case("worked: three of five right", tensor([1.0, 1, 0, 1, 0]), 5)
    yield case("worked: two of four right", tensor([1.0, 0, 0, 1]), 4)
    groups, size = draw.size(2, 3), draw.size(4, 6)
    yield case("several groups", draw.rewards(groups * size), size)
    shifted = draw.rewards(3 * size) + torch.arange(3).double().repeat_interleave(size) * 10
    yield case("groups of unlike rewards", shifted, size)
    yield case("as many groups as rows in a group", draw.rewards(9), 3)
    yield case("rewards of 0 and 1", draw.binary_rewards(8), 4)
    mixed = torch.cat([tensor([0.5] * 4), draw.rewards(4)])
    yield case("a group of equal rewards", mixed, 4)
    yield case("every reward is the same", torch.ones(6).double(), 3)
    yield case("another eps", draw.rewards(2 * size), size, eps=0.5)
    yield case("rewards that differ little", 1e-3 * draw.rewards(2 * size), size)
    yield case("rewards that hardly differ", 2e-5 * draw.rewards(2 * size), size)
    yield case("groups of two", draw.rewards(6), 2)
    yield case("groups of one", draw.rewards(3), 1)
    yield case("float32", draw.rewards(8).float(), 4)


def by_loop(rewards, group_size, eps=1e-4):
    advantages = torch.zeros_like(rewards)
    for start in range(0, len(rewards), group_size):
        group = rewards[start : start + group_size]
        if group_size > 1:
            rows = slice(start, start + group_size)
            advantages[rows] = (group - group.mean()) / (group.std() + eps)
    return advantages


def by_repeating(rewards, group_size, eps=1e-4):
    groups = rewards.double().view(len(rewards) // group_size, group_size)
    mean = groups.mean(1).repeat_interleave(group_size)
    squares = (rewards - mean).square().view_as(groups).sum(1) / max(group_size - 1, 1)
    return ((rewards - mean) / (squares.sqrt().repeat_interleave(group_size) + eps)).to(rewards)


def line_by_line(rewards, group_size, eps=1e-4):
    groups = rewards.reshape(-1, group_size)
    mean = groups.mean(1, keepdim=True)
    std = groups.std(1, correction=min(1, group_size - 1), keepdim=True)
    advantages = (groups - mean) / (std + eps)
    return advantages.flatten()


sketch = Sketch(line_by_line, leave_one_out_advantages)
alternatives = (by_loop, by_repeating)
