"""Rewards of steps, as advantages of tokens."""

from collections.abc import Iterator

import torch
from torch import Tensor

from rlcourse.checks.declaring import Case, CaseSampler, Sketch, mask_of, tensor
from rlcourse.courses.modules import beside

shared = beside(__file__, "rows_of_steps.py")


def cases(draw: CaseSampler) -> Iterator[Case]:
    def case(label: str, rewards: Tensor, lengths: list[list[int]], group_size: int) -> Case:
        """`lengths` are the tokens of each step, row by row."""
        ids, mask = shared.tokens_of(lengths)
        return Case(label, {"rewards": rewards, "ids": ids, "mask": mask, "group_size": group_size})

    def drawn(rows: int, steps: int) -> tuple[Tensor, list[list[int]]]:
        """Rewards of either sign, and rows of one to `steps` steps, of which one has all."""
        counts = draw.lengths(rows, steps)
        rewards = draw.rewards(rows * steps).reshape(rows, steps)
        lengths = [[draw.integer(1, 3) for _ in range(int(n))] for n in counts]
        return rewards * mask_of(counts, steps), lengths

    worked = tensor([[1.0, 1, 1], [1, 0, 0], [0, 0, 0]])
    yield case("worked: three answers", worked, [[2, 2, 1], [2, 2, 1], [2, 2, 1]], 3)
    yield case("rows of unlike length", tensor([[1.0, 0.5, 2], [0, 1, 0]]), [[2, 1, 2], [1, 3]], 2)
    size = draw.size(3, 4)
    yield case("two groups", *drawn(2 * size, 3), size)
    yield case("three groups", *drawn(9, 4), 3)
    yield case("as many groups as members", *drawn(9, 3), 3)
    yield case("as many steps as members", *drawn(8, 4), 4)
    yield case("rewards of 0 and 1", draw.binary_rewards(12).reshape(4, 3), [[2, 2, 2]] * 4, 2)
    yield case("one step", draw.rewards(4)[:, None], [[2], [3], [1], [2]], 2)
    yield case("a group of one", *drawn(3, 3), 1)
    yield case(
        "a row of one step in each group",
        draw.rewards(12).reshape(4, 3) * tensor([[1.0, 1, 1], [1, 0, 0]] * 2),
        [[2, 1, 2], [4], [1, 1, 1], [2]],
        2,
    )
    negative = -draw.rewards(12).abs().reshape(4, 3)
    yield case("rewards below 0", negative, [[1, 2, 2]] * 4, 4)
    yield case("equal rewards", torch.ones(4, 3).double(), [[1, 2, 1]] * 4, 4)
    yield case(
        "more columns than steps",
        torch.cat([draw.rewards(4).reshape(4, 1), torch.zeros(4, 2).double()], 1),
        [[2], [1], [3], [2]],
        2,
    )
    yield shared.with_ids_on_padding(case("ids that go on in the padding", *drawn(4, 3), 2))
    yield shared.in_dtype(case("a float mask", *drawn(4, 3), 2), torch.float64, "mask")
    yield shared.in_dtype(case("float32", *drawn(6, 3), 3), torch.float32, "rewards")
    yield case("a larger batch", *drawn(4 * size, 5), size)


def line_by_line(rewards, ids, mask, group_size):
    returns = rewards.flip(1).cumsum(1).flip(1)
    groups = returns.reshape(-1, group_size, returns.shape[1])
    baseline = groups.mean(1, keepdim=True)
    centered = (groups - baseline).reshape(returns.shape)
    per_token = centered.gather(1, ids)
    return per_token * mask


def by_loop(rewards, ids, mask, group_size):
    result = torch.zeros(ids.shape, dtype=rewards.dtype)
    for first in range(0, len(rewards), group_size):
        group = rewards[first : first + group_size]
        for i in range(group_size):
            for t in range(ids.shape[1]):
                if mask[first + i, t]:
                    s = ids[first + i, t]
                    returns = group[:, s:].sum(1)
                    result[first + i, t] = returns[i] - returns.mean()
    return result


def _over_those_that_have_the_step(rewards, ids, mask, group_size):
    steps = ids.masked_fill(~mask.bool(), 0).amax(1) + 1
    has = torch.arange(rewards.shape[1]) < steps[:, None]
    returns = rewards.flip(1).cumsum(1).flip(1)
    shape = (-1, group_size, rewards.shape[1])
    there = has.reshape(shape).to(rewards.dtype)
    total = (returns.reshape(shape) * there).sum(1, keepdim=True)
    baseline = total / there.sum(1, keepdim=True).clamp(min=1)
    centered = (returns.reshape(shape) - baseline).reshape(returns.shape)
    return centered.gather(1, ids) * mask


def _spread_over_the_tokens(rewards, ids, mask, group_size):
    counts = torch.zeros_like(rewards).scatter_add(1, ids, mask.to(rewards.dtype))
    return line_by_line(rewards, ids, mask, group_size) / counts.clamp(min=1).gather(1, ids)


sketch = Sketch(line_by_line)
alternatives = (by_loop,)
oracle = by_loop
