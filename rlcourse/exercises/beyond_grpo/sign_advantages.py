"""Advantages that say only which way."""

from collections.abc import Iterator
from functools import partial

import torch

from rlcourse.algorithms.beyond_grpo import sign_advantages
from rlcourse.algorithms.grpo import group_normalized_advantages
from rlcourse.checks.calling import Case
from rlcourse.checks.cases import CaseSampler, tensor
from rlcourse.checks.exercise import Exercise, Mistake
from rlcourse.checks.sketch import Sketch
from rlcourse.exercises.beyond_grpo.informative_groups import as_rows


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


def line_by_line(rewards, group_size, margin=0.0):
    groups = rewards.reshape(-1, group_size)
    shifted = groups - groups[:, :1]
    deviation = shifted - shifted.mean(1, keepdim=True)
    beyond = deviation.abs() > margin
    signs = deviation.sign() * beyond
    return signs.flatten()


_edit = Sketch(line_by_line, group_normalized_advantages).edit
_DEVIATION, _SIGNS = "shifted - shifted.mean(1, keepdim=True)", "deviation.sign() * beyond"
_between = partial(_edit, "what lies between", _SIGNS)


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
            _edit("the yardstick", _DEVIATION, "groups - groups.mean()"),
            "A question is compared with itself: the mean is the group's.",
        ),
        Mistake(
            "groups of every B-th row",
            _edit(
                "the groups",
                "rewards.reshape(-1, group_size)",
                "rewards.reshape(group_size, -1).T",
                _DEVIATION,
                "groups - groups.mean(1, keepdim=True)",
                "signs.flatten()",
                "signs.T.flatten()",
            ),
            "The completions of one prompt stand next to each other: `reshape(-1, group_size)`.",
        ),
        Mistake(
            "signs without a margin",
            _edit("the margin", "> margin", "> 0"),
            "A reward within `margin` of its group's mean says nothing: 0.",
        ),
        Mistake(
            "signs in which a reward exactly at the margin counts",
            _edit("the margin", "> margin", ">= margin"),
            "*Within* the margin includes its edge: a reward must be farther away than `margin`.",
            telling=1,
        ),
        Mistake(
            "−1 for everything that is not above the mean",
            _between("torch.where(deviation > margin, 1.0, -1.0).to(rewards.dtype)"),
            "There is a third value: 0 for a reward at the mean, or in a group that agrees.",
        ),
        Mistake(
            "signs of a rounding error",
            _edit("the yardstick", _DEVIATION, "groups - groups.mean(1, keepdim=True)"),
            "Seven rewards of 0.01 have a mean that is not quite 0.01, and the sign makes a ±1 of "
            "the difference: `group_mean_advantages` subtracts the group's first reward before.",
            telling=1,
        ),
        Mistake(
            "the signs of the rewards",
            _edit("the yardstick", _DEVIATION, "groups"),
            "What counts is better or worse than the group's mean.",
        ),
        Mistake(
            "signs against the group's median",
            _edit("the yardstick", _DEVIATION, "groups - groups.median(1, keepdim=True).values"),
            "The yardstick is the mean, as in the other advantages.",
        ),
        Mistake(
            "advantages shrunk by the margin",
            _edit("the size", _SIGNS, "deviation.sign() * (deviation.abs() - margin).clamp(min=0)"),
            "Only the sign is kept: +1, 0 or −1.",
        ),
        Mistake(
            "signs of the advantage minus the margin",
            _between("(deviation - margin).sign()"),
            "Then everything that is not above the margin is −1: there are two edges, +margin and "
            "−margin, and 0 lies between them.",
        ),
        Mistake(
            "advantages that keep their size outside the margin",
            _edit("the size", _SIGNS, "deviation * beyond"),
            "Only the sign is kept: +1, 0 or −1.",
        ),
        Mistake(
            "advantages limited to ±1",
            _edit("the size", _SIGNS, "(deviation * beyond).clamp(-1, 1)"),
            "A small advantage becomes ±1, too: only its sign is kept.",
        ),
        Mistake(
            "a margin measured in standard deviations",
            _edit(
                "the margin",
                "deviation.abs() >",
                "group_normalized_advantages(rewards, group_size, 1e-12).view_as(groups).abs() >",
            ),
            "The margin is in units of the reward.",
        ),
        Mistake(
            "signs turned around",
            _edit("the sign", "return signs", "return -signs"),
            "Better than the mean is +1.",
        ),
        Mistake(
            "signs left in the shape (B, G)",
            _edit("the shape", ".flatten()", ""),
            "An advantage for each row: flatten to (N,).",
        ),
        Mistake(
            "+1 for everything that is not below the mean",
            _between("torch.where(deviation >= -margin, 1.0, -1.0).to(rewards.dtype)"),
            "Within the margin there is nothing to praise: three answers, +1, 0 and −1.",
        ),
    ),
    alternatives=(signs_by_loop, signs_by_where, line_by_line),
    hints=(
        "You have had the difference from the group's mean since lesson 03.",
        "`group_mean_advantages`, then its sign, then 0 wherever its absolute value is not larger "
        "than the margin.",
        "`masked_fill` replaces where its first argument is True:\n\n"
        "    advantages = group_mean_advantages(rewards, group_size)\n"
        "    return advantages.sign().masked_fill(... <= margin, 0)",
    ),
)
