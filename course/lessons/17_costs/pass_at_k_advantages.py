"""Advantages of a group whose policy gradient is that of pass@k."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import combinations
from math import comb

import torch
from torch import Tensor

from rlcourse.algorithms.baselines import group_mean_advantages, leave_one_out_advantages
from rlcourse.algorithms.costs import pass_at_k_advantages
from rlcourse.checks.declaring import Case, CaseSampler, Sketch, tensor


def cases(draw: CaseSampler) -> Iterator[Case]:
    def case(label: str, rewards: Tensor, group_size: int, k: int) -> Case:
        arguments = {"rewards": rewards, "group_size": group_size, "k": k}
        return Case(label, arguments, exact_dtype=True)

    def group(right: int, size: int) -> Tensor:
        rewards = torch.zeros(size, dtype=torch.float64)
        rewards[draw.uniform(size).argsort()[:right]] = 1
        return rewards

    yield case("worked: two of four right, k = 2", tensor([1.0, 0, 0, 1]), 4, 2)
    size = draw.size(6, 8)
    yield case("one right", group(1, size), size, 2)
    yield case("one right, k = 3", group(1, size), size, 3)
    yield case("two right, k = 3", group(2, size), size, 3)
    yield case("half right", group(3, 6), 6, 2)
    yield case("as many wrong as k", group(size - 3, size), size, 3)
    yield case("fewer wrong than k", group(size - 2, size), size, 3)
    yield case("k = 1", group(2, size), size, 1)
    yield case("k = 1, one wrong", group(size - 1, size), size, 1)
    yield case("the largest k", group(1, size), size, size - 1)
    yield case("the largest k, two right", group(2, 5), 5, 4)
    several = torch.cat([group(right, size) for right in (1, 2, 3)])
    yield case("several groups", several, size, 2)
    yield case("as many groups as members", torch.cat([group(r, 4) for r in (0, 1, 2, 3)]), 4, 2)
    yield case("two groups", torch.cat([group(1, 6), group(3, 6)]), 6, 2)
    yield case("five groups of three", torch.cat([group(r, 3) for r in (1, 2, 0, 1, 1)]), 3, 1)
    yield case("nobody right", group(0, size), size, 2)
    yield case("all right", group(size, size), size, 2)
    yield case("a pair", tensor([1.0, 0]), 2, 1)
    yield case("float32", group(2, size).float(), size, 2)
    yield replace(case("k as large as the group", group(1, 4), 4, 4), raises=True)
    yield replace(case("k larger than the group", group(1, 4), 4, 5), raises=True)
    yield replace(case("k = 0", group(1, 4), 4, 0), raises=True)


def line_by_line(rewards, group_size, k):
    if k < 1 or k >= group_size:
        raise ValueError("1 <= k < group_size")
    groups = rewards.reshape(-1, group_size)
    right = groups.sum(1, keepdim=True)
    wrong = group_size - right
    fail = rewards.new_tensor([comb(w, k) / comb(group_size - 1, k) for w in range(group_size + 1)])
    of_right = k * fail[wrong.long()]
    share = right / wrong.clamp(min=1)
    of_wrong = -of_right * share
    advantages = torch.where(groups > 0, of_right, of_wrong)
    return advantages.flatten()


def by_choices(rewards, group_size, k):
    """What it says: over all choices of others, with the completion and without it."""
    if not 0 < k < group_size:
        raise ValueError("no such k")
    advantages = []
    for start in range(0, len(rewards), group_size):
        group = rewards[start : start + group_size].tolist()
        for i, own in enumerate(group):
            others = group[:i] + group[i + 1 :]
            joined = [max(own, *chosen, 0.0) for chosen in combinations(others, k - 1)]
            alone = [max(chosen) for chosen in combinations(others, k)]
            advantages.append(k * (sum(joined) / len(joined) - sum(alone) / len(alone)))
    return torch.tensor(advantages, dtype=rewards.dtype)


def _without_complaint(rewards, group_size, k):
    try:
        return pass_at_k_advantages(rewards, group_size, k)
    except ValueError:
        return 0 * rewards


def _normalized(rewards, group_size, k):
    """Chen et al.: pass@k of the whole group as the mean, divided by its spread."""
    if not 1 <= k < group_size:
        raise ValueError("no such k")
    out = []
    for group in rewards.reshape(-1, group_size).tolist():
        w = round(group_size - sum(group))
        mean = 1 - comb(w, k) / comb(group_size, k)
        spread = (mean * (1 - mean)) ** 0.5
        for own in group:
            wrong = 1 - comb(w - 1, k - 1) / comb(group_size - 1, k - 1) if w else 1.0
            out.append(((1.0 if own else wrong) - mean) / spread if spread else 0.0)
    return rewards.new_tensor(out)


sketch = Sketch(line_by_line, comb, group_mean_advantages, leave_one_out_advantages)
alternatives = (by_choices,)
oracle = by_choices
