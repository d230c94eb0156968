"""Lesson 00: one function, to see how a check reads."""

from collections.abc import Iterator

import torch

from rlcourse.checks.declaring import Case, CaseSampler, tensor


def cases(draw: CaseSampler) -> Iterator[Case]:
    yield Case("worked: three of four right", {"rewards": tensor([1.0, 0.0, 1.0, 1.0])})
    yield Case("one completion", {"rewards": draw.rewards(1)})
    yield Case("nobody right", {"rewards": torch.zeros(draw.size(3, 6)).double()})
    yield Case("everybody right", {"rewards": torch.ones(draw.size(3, 6)).double()})
    yield Case("rewards of 0 and 1", {"rewards": draw.binary_rewards(8)})
    yield Case("rewards of any size and sign", {"rewards": draw.rewards(draw.size(5, 9))})
    yield Case("an even number of rewards", {"rewards": draw.rewards(6)})
    yield Case("float32", {"rewards": draw.rewards(5, torch.float32)})


def _without_the_last(rewards):
    return rewards[:-1].sum() / max(1, len(rewards) - 1)


def _mean_by_loop(rewards):
    total = torch.zeros_like(rewards[0])
    for reward in rewards:
        total = total + reward
    return total / rewards.numel()


def _mean_by_torch(rewards):
    return rewards.mean()


alternatives = (_mean_by_torch, _mean_by_loop)
