"""Advantages that say only which way."""

from collections.abc import Iterator

import torch

from rlcourse.algorithms.grpo import group_normalized_advantages
from rlcourse.checks.declaring import Case, CaseSampler, Sketch, tensor


def cases(draw: CaseSampler) -> Iterator[Case]:
    def case(label, rewards, group_size, **margin) -> Case:
        return Case(label, {"rewards": rewards, "group_size": group_size, **margin})

    yield case("worked: three of five right", tensor([1.0, 1, 0, 1, 0]), 5)
    graded = tensor([1.0, 0.5, 0.4, 0.1])
    yield case("worked: a margin of 0.2", graded, 4, margin=0.2)
    size = draw.size(4, 6)
    yield case("several groups", draw.rewards(3 * size), size)
    shifted = draw.rewards(3 * size) + torch.arange(3).double().repeat_interleave(size) * 10
    yield case("groups of unlike rewards", shifted, size)
    yield case("groups of unlike rewards, with a margin", shifted, size, margin=0.6)
    yield case("as many groups as rows in a group", draw.rewards(9), 3)
    yield case("equal rewards of 0.01, float32", torch.full((14,), 0.01), 7)
    yield case("a margin that is just met", tensor([0.0, 1, 0, 1]), 2, margin=0.5)
    yield case("a margin of 1", 3 * draw.rewards(2 * size), size, margin=1.0)
    yield case("a margin larger than any difference", draw.rewards(size), size, margin=9.0)
    yield case("a reward at the mean", tensor([0.0, 1, 2, 5, 5, 5]), 3)
    yield case("far from symmetric", tensor([0.0, 0, 0, 0, 0, 12.0]), 6, margin=1.5)
    yield case("groups of one", draw.rewards(3), 1)
    yield case("float32", draw.binary_rewards(8).float(), 4)


def signs_by_loop(rewards, group_size, margin=0.0):
    result = torch.zeros_like(rewards)
    for start in range(0, len(rewards), group_size):
        group = [float(r) for r in rewards[start : start + group_size]]
        excess = [sum(r - other for other in group) for r in group]  # G times the deviation
        for i, value in enumerate(excess, start):
            result[i] = (value > group_size * margin) - (value < -group_size * margin)
    return result


def line_by_line(rewards, group_size, margin=0.0):
    groups = rewards.reshape(-1, group_size)
    shifted = groups - groups[:, :1]
    deviation = shifted - shifted.mean(1, keepdim=True)
    beyond = deviation.abs() > margin
    signs = deviation.sign() * beyond
    return signs.flatten()


sketch = Sketch(line_by_line, group_normalized_advantages)
alternatives = (signs_by_loop,)
