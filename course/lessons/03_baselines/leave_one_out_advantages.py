"""Advantages against the mean of the others of the group."""

import torch

from rlcourse.algorithms.baselines import group_mean_advantages, leave_one_out_advantages
from rlcourse.checks.declaring import Sketch
from rlcourse.courses.modules import beside

group_mean = beside(__file__, "group_mean_advantages.py")
cases = group_mean.cases
grouped = group_mean.grouped
spread = group_mean.spread


def _loo_in_place(rewards, group_size):
    rewards.copy_(leave_one_out_advantages(rewards, group_size))
    return rewards.clone()


def _loo_by_loop(rewards, group_size):
    values, advantages = rewards.tolist(), []
    for i, reward in enumerate(values):
        start = i - i % group_size
        others = values[start:i] + values[i + 1 : start + group_size]
        advantages.append(reward - (sum(others) / len(others) if others else 0.0))
    return torch.tensor(advantages, dtype=rewards.dtype)


def _loo_by_scaling(rewards, group_size):
    if group_size == 1:
        return rewards.clone()
    return group_mean_advantages(rewards, group_size) * group_size / (group_size - 1)


def line_by_line(rewards, group_size):
    groups = rewards.reshape(-1, group_size)
    others = groups.sum(1, keepdim=True) - groups
    baseline = others / max(group_size - 1, 1)
    advantages = groups - baseline
    return advantages.flatten()


def best_of_others(groups):
    size = groups.shape[1]
    own = torch.eye(size, dtype=torch.bool)
    others = groups[:, None, :].expand(-1, size, -1).masked_fill(own, -torch.inf)
    return others.amax(2) if size > 1 else torch.zeros_like(groups)


def mean_of_different(groups, nobody):
    """The mean of the group's rewards that are not equal to one's own; `nobody` without any."""
    different = groups[:, None, :] != groups[:, :, None]
    count = different.sum(2)
    mean = (groups[:, None, :] * different).sum(2) / count.clamp(min=1)
    return torch.where(count > 0, mean, nobody)


sketch = Sketch(line_by_line, best_of_others, mean_of_different, spread)
alternatives = (_loo_by_loop, _loo_by_scaling)
