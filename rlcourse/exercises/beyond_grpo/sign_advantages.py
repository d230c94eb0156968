"""Advantages that say only which way."""

from collections.abc import Iterator

import torch

from rlcourse.algorithms.beyond_grpo import sign_advantages
from rlcourse.algorithms.grpo import group_normalized_advantages
from rlcourse.checks.calling import Case
from rlcourse.checks.cases import CaseSampler, tensor
from rlcourse.checks.exercise import Exercise, Mistake
from rlcourse.exercises.beyond_grpo.informative_groups import as_rows, columns

# sign_advantages


def _sign_cases(draw: CaseSampler) -> Iterator[Case]:
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


def _deviation(rewards, group_size):
    groups = as_rows(rewards, group_size)
    shifted = groups - groups[:, :1]
    return shifted - shifted.mean(1, keepdim=True)


def _signs(advantages, margin):
    return advantages.sign() * (advantages.abs() > margin)


def _median(rewards, group_size, margin=0.0):
    groups = as_rows(rewards, group_size)
    return _signs(groups - groups.median(1, keepdim=True).values, margin).flatten()


def _soft(rewards, group_size, margin=0.0):
    deviation = _deviation(rewards, group_size)
    return (deviation.sign() * (deviation.abs() - margin).clamp(min=0)).flatten()


def _clamped(rewards, group_size, margin=0.0):
    return (
        sign_advantages(rewards, group_size, margin)
        * _deviation(rewards, group_size).abs().flatten()
    ).clamp(-1, 1)


def signs_by_loop(rewards, group_size, margin=0.0):
    result = torch.zeros_like(rewards)
    for start in range(0, len(rewards), group_size):
        group = [float(r) for r in rewards[start : start + group_size]]
        excess = [sum(r - other for other in group) for r in group]  # G times the deviation
        for i, value in enumerate(excess, start):
            result[i] = (value > group_size * margin) - (value < -group_size * margin)
    return result


def signs_by_where(rewards, group_size, margin=0.0):
    deviation = _deviation(rewards.double(), group_size).flatten()
    above, below = deviation > margin, deviation < -margin
    return torch.where(above, 1.0, torch.where(below, -1.0, 0.0)).to(rewards.dtype)


EXERCISE = Exercise(
    reference=sign_advantages,
    lesson="07_beyond_grpo",
    section="Only the sign",
    points=2,
    difficulty=2,
    minutes=8,
    cases=_sign_cases,
    mistakes=(
        Mistake(
            "signs against the mean of the whole batch",
            lambda rewards, group_size, margin=0.0: _signs(rewards - rewards.mean(), margin),
            "A question is compared with itself: the mean is the group's.",
        ),
        Mistake(
            "groups of every B-th row",
            lambda rewards, group_size, margin=0.0: _signs(
                columns(rewards, group_size) - columns(rewards, group_size).mean(1, keepdim=True),
                margin,
            ).T.flatten(),
            "The completions of one prompt stand next to each other: `reshape(-1, group_size)`.",
        ),
        Mistake(
            "signs without a margin",
            lambda rewards, group_size, margin=0.0: sign_advantages(rewards, group_size),
            "A reward within `margin` of its group's mean says nothing: 0.",
        ),
        Mistake(
            "signs in which a reward exactly at the margin counts",
            lambda rewards, group_size, margin=0.0: (
                _deviation(rewards, group_size).sign()
                * (_deviation(rewards, group_size).abs() >= margin)
            ).flatten(),
            "*Within* the margin includes its edge: a reward must be farther away than `margin`.",
            telling=1,
        ),
        Mistake(
            "−1 for everything that is not above the mean",
            lambda rewards, group_size, margin=0.0: (
                torch.where(_deviation(rewards, group_size) > margin, 1.0, -1.0)
                .to(rewards.dtype)
                .flatten()
            ),
            "There is a third value: 0 for a reward at the mean, or in a group that agrees.",
        ),
        Mistake(
            "signs of a rounding error",
            lambda rewards, group_size, margin=0.0: _signs(
                as_rows(rewards, group_size) - as_rows(rewards, group_size).mean(1, keepdim=True),
                margin,
            ).flatten(),
            "Seven rewards of 0.01 have a mean that is not quite 0.01, and the sign makes a ±1 of "
            "the difference: `group_mean_advantages` subtracts the group's first reward before.",
            telling=1,
        ),
        Mistake(
            "the signs of the rewards",
            lambda rewards, group_size, margin=0.0: _signs(rewards, margin),
            "What counts is better or worse than the group's mean.",
        ),
        Mistake(
            "signs against the group's median",
            _median,
            "The yardstick is the mean, as in the other advantages.",
        ),
        Mistake(
            "advantages shrunk by the margin",
            _soft,
            "Only the sign is kept: +1, 0 or −1.",
        ),
        Mistake(
            "signs of the advantage minus the margin",
            lambda rewards, group_size, margin=0.0: (
                (_deviation(rewards, group_size) - margin).sign().flatten()
            ),
            "Then everything that is not above the margin is −1: there are two edges, +margin and "
            "−margin, and 0 lies between them.",
        ),
        Mistake(
            "advantages that keep their size outside the margin",
            lambda rewards, group_size, margin=0.0: (
                _deviation(rewards, group_size) * (_deviation(rewards, group_size).abs() > margin)
            ).flatten(),
            "Only the sign is kept: +1, 0 or −1.",
        ),
        Mistake(
            "advantages limited to ±1",
            _clamped,
            "A small advantage becomes ±1, too: only its sign is kept.",
        ),
        Mistake(
            "a margin measured in standard deviations",
            lambda rewards, group_size, margin=0.0: _signs(
                group_normalized_advantages(rewards, group_size, 1e-12), margin
            ),
            "The margin is in units of the reward.",
        ),
        Mistake(
            "signs turned around",
            lambda rewards, group_size, margin=0.0: -sign_advantages(rewards, group_size, margin),
            "Better than the mean is +1.",
        ),
        Mistake(
            "signs left in the shape (B, G)",
            lambda rewards, group_size, margin=0.0: as_rows(
                sign_advantages(rewards, group_size, margin), group_size
            ),
            "An advantage for each row: flatten to (N,).",
        ),
        Mistake(
            "+1 for everything that is not below the mean",
            lambda rewards, group_size, margin=0.0: (
                torch.where(_deviation(rewards, group_size) >= -margin, 1.0, -1.0)
                .flatten()
                .to(rewards.dtype)
            ),
            "Within the margin there is nothing to praise: three answers, +1, 0 and −1.",
        ),
    ),
    alternatives=(signs_by_loop, signs_by_where),
    hints=(
        "You have had the difference from the group's mean since lesson 03.",
        "`group_mean_advantages`, then its sign, then 0 wherever its absolute value is not larger "
        "than the margin.",
        "`masked_fill` replaces where its first argument is True:\n\n"
        "    advantages = group_mean_advantages(rewards, group_size)\n"
        "    return advantages.sign().masked_fill(... <= margin, 0)",
    ),
)
