"""Rewards normalized within their group."""

from collections.abc import Iterator
from functools import partial

import torch

from rlcourse.algorithms.baselines import leave_one_out_advantages
from rlcourse.algorithms.grpo import group_normalized_advantages
from rlcourse.checks.calling import Case
from rlcourse.checks.cases import CaseSampler, tensor
from rlcourse.checks.exercise import Exercise, Mistake
from rlcourse.checks.sketch import Sketch


def _cases(draw: CaseSampler) -> Iterator[Case]:
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


def by_membership(rewards, group_size, eps=1e-4):
    group = torch.arange(len(rewards)) // group_size
    same = (group[:, None] == group).to(rewards.dtype)
    centered = rewards - same @ rewards / group_size
    variance = same @ centered**2 / max(group_size - 1, 1)
    return centered / (variance**0.5 + eps)


def line_by_line(rewards, group_size, eps=1e-4):
    groups = rewards.reshape(-1, group_size)
    mean = groups.mean(1, keepdim=True)
    std = groups.std(1, correction=min(1, group_size - 1), keepdim=True)
    advantages = (groups - mean) / (std + eps)
    return advantages.flatten()


_edit = Sketch(line_by_line, leave_one_out_advantages).edit
_divisor = partial(_edit, "the divisor", "(std + eps)")


EXERCISE = Exercise(
    reference=group_normalized_advantages,
    lesson="06_grpo",
    section="A critic that is always up to date",
    points=3,
    difficulty=2,
    minutes=10,
    cases=_cases,
    mistakes=(
        Mistake(
            "the population standard deviation, which divides by G",
            _edit(
                "the standard deviation: its divisor",
                "correction=min(1, group_size - 1)",
                "correction=0",
            ),
            "The convention here (and in TRL) is the *sample* standard deviation: G − 1, what "
            "`std` computes when nothing else is asked for.",
        ),
        Mistake(
            "the standard deviation of the whole batch",
            _edit(
                "the standard deviation: of what",
                "groups.std(1, correction=min(1, group_size - 1), keepdim=True)",
                "rewards.std()",
            ),
            "A question is compared with itself: mean *and* standard deviation are its group's.",
        ),
        Mistake(
            "the mean of the whole batch",
            _edit("the mean: of what", "groups.mean(1, keepdim=True)", "rewards.mean()"),
            "An easy question would count as good writing, a hard one as bad: the mean must be "
            "that of the reward's own group.",
        ),
        Mistake(
            "rewards normalized over the whole batch",
            _edit(
                "the groups",
                "groups.mean(1, keepdim=True)",
                "rewards.mean()",
                "groups.std(1, correction=min(1, group_size - 1), keepdim=True)",
                "rewards.std()",
            ),
            "The critic is the group: reshape to (B, G) and normalize each row by itself.",
        ),
        Mistake(
            "eps inside the root",
            _edit("eps", "(std + eps)", "(std.square() + eps).sqrt()"),
            "eps is added to the standard deviation, not to the variance.",
        ),
        Mistake(
            "a division without eps",
            _edit("eps", "(std + eps)", "std"),
            "Where all rewards of a group are equal this is 0/0, which is NaN, and one NaN ends "
            "a run.",
        ),
        Mistake(
            "an eps of 1e-4 whatever the argument says",
            _edit("eps", "std + eps", "std + 1e-4"),
            "Add the argument `eps`, not its default.",
            telling=1,
        ),
        Mistake(
            "a standard deviation that is at least eps",
            _edit("eps", "(std + eps)", "std.clamp(min=eps)"),
            "eps is added to the standard deviation; a lower bound is another function.",
        ),
        Mistake(
            "groups of every B-th row",
            _edit(
                "the groups",
                "rewards.reshape(-1, group_size)",
                "rewards.reshape(group_size, -1).T",
                "advantages.flatten()",
                "advantages.T.flatten()",
            ),
            "The completions of one prompt stand next to each other: `reshape(-1, group_size)` "
            "makes a group a row.",
        ),
        Mistake(
            "rewards minus the group's mean, not divided by anything",
            _edit("the divisor", " / (std + eps)", ""),
            "These are lesson 03's advantages; here they are also divided by the group's standard "
            "deviation.",
        ),
        Mistake(
            "a division by the variance",
            _divisor("(std.square() + eps)"),
            "The variance has the unit of a squared reward: dividing by its root makes advantages "
            "free of the reward's unit.",
        ),
        Mistake(
            "rewards divided by the standard deviation, but not centered",
            _edit("the mean: is it subtracted", "groups - mean", "groups"),
            "Without the mean every positive reward is praised, the worst of the group included.",
        ),
        Mistake(
            "advantages with their sign turned",
            _edit("the sign", "return ", "return -"),
            "Better than the group must be positive: the reward minus the mean.",
        ),
        Mistake(
            "a division by the mean absolute deviation",
            _divisor("((groups - groups.mean(1, keepdim=True)).abs().mean(1, keepdim=True) + eps)"),
            "The standard deviation is the root of the mean *squared* deviation.",
        ),
        Mistake(
            "rewards minus the mean of the others",
            _edit(
                "the mean: is it subtracted",
                "groups - mean",
                "leave_one_out_advantages(rewards, group_size).reshape(-1, group_size)",
            ),
            "That is leave-one-out: GRPO's mean is over the whole group, the completion itself "
            "included.",
        ),
        Mistake(
            "a standard deviation that is NaN for a group of one",
            _edit("groups of one", "min(1, group_size - 1)", "1"),
            "One completion has nothing to be compared with, and G − 1 is 0: its advantage is 0.",
            telling=1,
        ),
        Mistake(
            "the reward itself for a group of one",
            _edit(
                "groups of one",
                "advantages.flatten()",
                "advantages.flatten() if group_size > 1 else rewards.clone()",
            ),
            "One completion has nothing to be compared with: it is its own mean, and its advantage "
            "is 0.",
            telling=1,
        ),
        Mistake(
            "the groups laid out as columns, but compared along the rows",
            _edit(
                "the groups",
                "rewards.reshape(-1, group_size)",
                "rewards.reshape(group_size, -1)",
                "group_size - 1)",
                "groups.shape[1] - 1)",
            ),
            "`reshape(-1, group_size)` makes a group a row, (B, G), and mean and standard "
            "deviation run along dim 1.",
        ),
        Mistake(
            "rewards scaled to the range of their group",
            _divisor("(groups.amax(1, keepdim=True) - groups.amin(1, keepdim=True) + eps)"),
            "The divisor is the standard deviation, not the largest reward minus the smallest.",
        ),
        Mistake(
            "advantages left in the shape (B, G)",
            _edit("the shape of the result", "advantages.flatten()", "advantages"),
            "Everything after this expects an advantage for each row: flatten to (N,).",
        ),
        Mistake(
            "a division without eps, and 0 where the standard deviation is 0",
            _edit(
                "eps",
                "(groups - mean) / (std + eps)",
                "torch.where(std > 0, (groups - mean) / std, 0.0)",
            ),
            "eps is for groups that *nearly* agree as well: without it a difference of a rounding "
            "error is a full advantage.",
        ),
    ),
    alternatives=(by_loop, by_repeating, by_membership, line_by_line),
    hints=(
        "Make a row of each group first; then everything happens along the rows.",
        "Mean and standard deviation along dim 1, with `keepdim=True` so that they line up with "
        "the groups. `correction=1` is the sample standard deviation; a group of one has none.",
        "Mind the shape of the result:\n\n"
        "    groups = rewards.reshape(-1, group_size)\n"
        "    centered = groups - ...\n"
        "    std = groups.std(dim=1, correction=min(1, group_size - 1), keepdim=True)\n"
        "    return (... / (... + eps)).flatten()",
    ),
)
