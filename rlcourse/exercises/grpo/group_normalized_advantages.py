"""Rewards normalized within their group."""

from collections.abc import Iterator

import torch

from rlcourse.algorithms.baselines import leave_one_out_advantages
from rlcourse.algorithms.grpo import group_normalized_advantages
from rlcourse.checks.calling import Case
from rlcourse.checks.cases import CaseSampler, tensor
from rlcourse.checks.exercise import Exercise, Mistake


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


def _grouped(rewards, group_size):
    return rewards.reshape(-1, group_size)


def _centered(rewards, group_size):
    groups = _grouped(rewards, group_size)
    return groups - groups.mean(1, keepdim=True)


def _std(rewards, group_size):
    """The sample standard deviation, 0 for a group of one."""
    groups = _grouped(rewards, group_size)
    return groups.std(1, correction=min(1, group_size - 1), keepdim=True)


def _population_std(rewards, group_size, eps=1e-4):
    std = _grouped(rewards, group_size).std(1, correction=0, keepdim=True)
    return (_centered(rewards, group_size) / (std + eps)).flatten()


def _batch_std(rewards, group_size, eps=1e-4):
    return (_centered(rewards, group_size) / (rewards.std() + eps)).flatten()


def _batch_mean(rewards, group_size, eps=1e-4):
    centered = _grouped(rewards - rewards.mean(), group_size)
    return (centered / (_std(rewards, group_size) + eps)).flatten()


def _whole_batch(rewards, group_size, eps=1e-4):
    return (rewards - rewards.mean()) / (rewards.std() + eps)


def _eps_inside(rewards, group_size, eps=1e-4):
    return (
        _centered(rewards, group_size) / (_std(rewards, group_size).square() + eps).sqrt()
    ).flatten()


def _no_eps(rewards, group_size, eps=1e-4):
    return (_centered(rewards, group_size) / _std(rewards, group_size)).flatten()


def _own_eps(rewards, group_size, eps=1e-4):
    return group_normalized_advantages(rewards, group_size)


def _clamped(rewards, group_size, eps=1e-4):
    return (_centered(rewards, group_size) / _std(rewards, group_size).clamp(min=eps)).flatten()


def _interleaved(rewards, group_size, eps=1e-4):
    groups = rewards.reshape(group_size, -1)
    centered = groups - groups.mean(0)
    return (centered / (groups.std(0, correction=min(1, group_size - 1)) + eps)).flatten()


def _transposed(rewards, group_size, eps=1e-4):
    groups = rewards.reshape(group_size, -1)
    std = groups.std(1, correction=min(1, groups.shape[1] - 1), keepdim=True)
    return ((groups - groups.mean(1, keepdim=True)) / (std + eps)).flatten()


def _mean_only(rewards, group_size, eps=1e-4):
    return _centered(rewards, group_size).flatten()


def _variance(rewards, group_size, eps=1e-4):
    return (_centered(rewards, group_size) / (_std(rewards, group_size).square() + eps)).flatten()


def _not_centered(rewards, group_size, eps=1e-4):
    return (_grouped(rewards, group_size) / (_std(rewards, group_size) + eps)).flatten()


def _negative(rewards, group_size, eps=1e-4):
    return -group_normalized_advantages(rewards, group_size, eps)


def _absolute_deviation(rewards, group_size, eps=1e-4):
    centered = _centered(rewards, group_size)
    return (centered / (centered.abs().mean(1, keepdim=True) + eps)).flatten()


def _leave_one_out(rewards, group_size, eps=1e-4):
    advantages = _grouped(leave_one_out_advantages(rewards, group_size), group_size)
    return (advantages / (_std(rewards, group_size) + eps)).flatten()


def _nan_for_one(rewards, group_size, eps=1e-4):
    if group_size == 1:
        return torch.full_like(rewards, torch.nan)
    return group_normalized_advantages(rewards, group_size, eps)


def _scaled_to_range(rewards, group_size, eps=1e-4):
    groups = _grouped(rewards, group_size)
    spread = groups.amax(1, keepdim=True) - groups.amin(1, keepdim=True)
    return (_centered(rewards, group_size) / (spread + eps)).flatten()


def _unflattened(rewards, group_size, eps=1e-4):
    return _grouped(group_normalized_advantages(rewards, group_size, eps), group_size)


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
            _population_std,
            "The convention here (and in TRL) is the *sample* standard deviation: G − 1, what "
            "`std` computes when nothing else is asked for.",
        ),
        Mistake(
            "the standard deviation of the whole batch",
            _batch_std,
            "A question is compared with itself: mean *and* standard deviation are its group's.",
        ),
        Mistake(
            "the mean of the whole batch",
            _batch_mean,
            "An easy question would count as good writing, a hard one as bad: the mean must be "
            "that of the reward's own group.",
        ),
        Mistake(
            "rewards normalized over the whole batch",
            _whole_batch,
            "The critic is the group: reshape to (B, G) and normalize each row by itself.",
        ),
        Mistake(
            "eps inside the root",
            _eps_inside,
            "eps is added to the standard deviation, not to the variance.",
        ),
        Mistake(
            "a division without eps",
            _no_eps,
            "Where all rewards of a group are equal this is 0/0, which is NaN, and one NaN ends "
            "a run.",
        ),
        Mistake(
            "an eps of 1e-4 whatever the argument says",
            _own_eps,
            "Add the argument `eps`, not its default.",
            telling=1,
        ),
        Mistake(
            "a standard deviation that is at least eps",
            _clamped,
            "eps is added to the standard deviation; a lower bound is another function.",
        ),
        Mistake(
            "groups of every B-th row",
            _interleaved,
            "The completions of one prompt stand next to each other: `reshape(-1, group_size)` "
            "makes a group a row.",
        ),
        Mistake(
            "rewards minus the group's mean, not divided by anything",
            _mean_only,
            "These are lesson 03's advantages; here they are also divided by the group's standard "
            "deviation.",
        ),
        Mistake(
            "a division by the variance",
            _variance,
            "The variance has the unit of a squared reward: dividing by its root makes advantages "
            "free of the reward's unit.",
        ),
        Mistake(
            "rewards divided by the standard deviation, but not centered",
            _not_centered,
            "Without the mean every positive reward is praised, the worst of the group included.",
        ),
        Mistake(
            "advantages with their sign turned",
            _negative,
            "Better than the group must be positive: the reward minus the mean.",
        ),
        Mistake(
            "a division by the mean absolute deviation",
            _absolute_deviation,
            "The standard deviation is the root of the mean *squared* deviation.",
        ),
        Mistake(
            "rewards minus the mean of the others",
            _leave_one_out,
            "That is leave-one-out: GRPO's mean is over the whole group, the completion itself "
            "included.",
        ),
        Mistake(
            "a standard deviation that is NaN for a group of one",
            _nan_for_one,
            "One completion has nothing to be compared with, and G − 1 is 0: its advantage is 0.",
            telling=1,
        ),
        Mistake(
            "the reward itself for a group of one",
            lambda rewards, group_size, eps=1e-4: (
                rewards.clone()
                if group_size == 1
                else group_normalized_advantages(rewards, group_size, eps)
            ),
            "One completion has nothing to be compared with: it is its own mean, and its advantage "
            "is 0.",
            telling=1,
        ),
        Mistake(
            "the groups laid out as columns, but compared along the rows",
            _transposed,
            "`reshape(-1, group_size)` makes a group a row, (B, G), and mean and standard "
            "deviation run along dim 1.",
        ),
        Mistake(
            "rewards scaled to the range of their group",
            _scaled_to_range,
            "The divisor is the standard deviation, not the largest reward minus the smallest.",
        ),
        Mistake(
            "advantages left in the shape (B, G)",
            _unflattened,
            "Everything after this expects an advantage for each row: flatten to (N,).",
        ),
    ),
    alternatives=(by_loop, by_repeating, by_membership),
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
