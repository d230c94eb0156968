"""Lesson 00: one function, to see how a check reads."""

from collections.abc import Iterator

import torch

from rlcourse.algorithms.start_here import mean_reward
from rlcourse.checks.calling import Case
from rlcourse.checks.cases import CaseSampler, tensor
from rlcourse.checks.exercise import Exercise, Mistake


def _cases(draw: CaseSampler) -> Iterator[Case]:
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


def _mean_by_weights(rewards):
    return rewards @ torch.full_like(rewards, 1 / len(rewards))


def _mean_by_torch(rewards):
    return rewards.mean()


EXERCISE = Exercise(
    reference=mean_reward,
    lesson="00_start_here",
    section="Your first function",
    points=0,
    difficulty=1,
    minutes=2,
    cases=_cases,
    mistakes=(
        Mistake(
            "the sum of the rewards",
            lambda rewards: rewards.sum(),
            "A sum grows with the number of attempts: divide it by how many there are, G.",
        ),
        Mistake(
            "a sum divided by 4, whatever the size of the group",
            lambda rewards: rewards.sum() / 4,
            "Groups of another size come up as well: divide by `len(rewards)`.",
        ),
        Mistake(
            "a sum divided by G − 1",
            lambda rewards: rewards.sum() / (len(rewards) - 1),
            "G − 1 belongs to a variance; a mean divides by G.",
        ),
        Mistake(
            "the share of positive rewards",
            lambda rewards: (rewards > 0).to(rewards.dtype).mean(),
            "That is the same for rewards of 0 and 1 only, and a reward may be any number.",
        ),
        Mistake(
            "the best reward of the group",
            lambda rewards: rewards.max(),
            "One lucky attempt of many is not how good the model is on average.",
        ),
        Mistake(
            "the median",
            lambda rewards: rewards.median(),
            "A mean takes every reward at its size; the median only sorts them.",
        ),
        Mistake(
            "a mean without the last reward",
            _without_the_last,
            "`rewards[:-1]` ends one too early: all G rewards count.",
        ),
        Mistake(
            "a Python number in place of a tensor",
            lambda rewards: rewards.sum().item() / len(rewards),
            "Here tensors go in and tensors come out: leave `.item()` away.",
        ),
    ),
    alternatives=(_mean_by_torch, _mean_by_loop, _mean_by_weights),
    hints=(
        "Three rewards of 1 and one of 0 have the mean 0.75. How did you get that?",
        "Add the rewards up and divide by how many there are.",
        "One line:\n\n    return rewards.sum() / ...",
    ),
)
