"""Which groups say anything."""

from collections.abc import Iterator

import torch

from rlcourse.algorithms.beyond_grpo import informative_groups
from rlcourse.checks.calling import Case
from rlcourse.checks.cases import CaseSampler, tensor
from rlcourse.checks.exercise import Exercise, Mistake


def as_rows(rewards, group_size):
    return rewards.reshape(-1, group_size)


def columns(rewards, group_size):
    """Groups of every B-th row, which is wrong."""
    return rewards.reshape(group_size, -1).T


def _group_cases(draw: CaseSampler) -> Iterator[Case]:
    def case(label, rewards, group_size) -> Case:
        return Case(label, {"rewards": rewards, "group_size": group_size})

    worked = tensor([1.0, 1, 0, 1, 0, 0, 0, 0, 1, 1, 1, 1])
    yield case("worked: mixed, all wrong, all right", worked, 4)
    yield case("one of six is right", tensor([0.0] * 5 + [1.0] + [0.0] * 6), 6)
    yield case("one of six is wrong", tensor([1.0, 1, 0, 1, 1, 1] + [1.0] * 6), 6)
    size = draw.size(3, 5)
    levels = draw.rewards(3).repeat_interleave(size)
    yield case("equal within groups, different between", levels, size)
    yield case("different rewards, neither 0 nor 1", draw.rewards(2 * size), size)
    yield case("equal rewards of 0.01, float32", torch.full((14,), 0.01), 7)
    yield case("the first and the last agree", tensor([1.0, 0, 1, 2, 2, 2]), 3)
    yield case("the first two agree", tensor([0.3, 0.3, 0.7, 0.3, 0.3, 0.3]), 3)
    yield case("a mean of 0", tensor([1.0, -1, 0, 0]), 2)
    yield case("rewards that differ by 1e-5", tensor([0.5, 0.5 + 1e-5, 0.5, 0.5]), 2)
    yield case("groups of one", draw.rewards(3), 1)
    square = torch.cat([torch.ones(3), tensor([1.0, 0, 1]), torch.zeros(3)]).double()
    yield case("as many groups as rows in a group", square, 3)
    yield case("float32", draw.binary_rewards(8).float(), 4)


def informative_by_loop(rewards, group_size):
    groups = [rewards[i : i + group_size] for i in range(0, len(rewards), group_size)]
    return torch.tensor([len(set(group.tolist())) > 1 for group in groups])


def informative_by_range(rewards, group_size):
    groups = as_rows(rewards, group_size)
    return groups.amax(dim=1) > groups.amin(dim=1)


def informative_by_std(rewards, group_size):
    return as_rows(rewards, group_size).std(dim=1, correction=0) > 0


def _mean_inside(rewards, group_size):
    mean = as_rows(rewards, group_size).mean(1)
    return (mean > 0) & (mean < 1)


EXERCISE = Exercise(
    reference=informative_groups,
    lesson="07_beyond_grpo",
    section="Dynamic sampling",
    points=2,
    difficulty=1,
    minutes=8,
    cases=_group_cases,
    mistakes=(
        Mistake(
            "the groups whose rewards are all equal",
            lambda rewards, group_size: ~informative_groups(rewards, group_size),
            "True is for the groups to keep, those with more than one reward.",
        ),
        Mistake(
            "groups with a mean strictly between 0 and 1",
            _mean_inside,
            "Right for rewards of 0 and 1 only: what matters is whether rewards *differ*.",
        ),
        Mistake(
            "groups with any reward",
            lambda rewards, group_size: (as_rows(rewards, group_size) != 0).any(1),
            "A group that is all right has no more to say than one that is all wrong.",
        ),
        Mistake(
            "groups whose rewards sum to more than 0",
            lambda rewards, group_size: as_rows(rewards, group_size).sum(1) > 0,
            "A group that is all right has no more to say than one that is all wrong.",
        ),
        Mistake(
            "groups that are not all right",
            lambda rewards, group_size: (as_rows(rewards, group_size) != 1).any(1),
            "A group that is all wrong has advantage 0 everywhere, too.",
        ),
        Mistake(
            "groups in which a reward differs from the computed mean",
            lambda rewards, group_size: (
                as_rows(rewards, group_size) != as_rows(rewards, group_size).mean(1, keepdim=True)
            ).any(1),
            "Seven rewards of 0.01 have a mean that is not quite 0.01: compare the rewards with "
            "each other.",
            telling=1,
        ),
        Mistake(
            "groups of every B-th row",
            lambda rewards, group_size: (
                columns(rewards, group_size) != columns(rewards, group_size)[:, :1]
            ).any(1),
            "The completions of one prompt stand next to each other: `reshape(-1, group_size)`.",
        ),
        Mistake(
            "an entry for each row in place of each group",
            lambda rewards, group_size: informative_groups(rewards, group_size).repeat_interleave(
                group_size
            ),
            "One answer per question: (B,), where B = N / G.",
        ),
        Mistake(
            "a comparison of the first and the last row alone",
            lambda rewards, group_size: (
                as_rows(rewards, group_size)[:, 0] != as_rows(rewards, group_size)[:, -1]
            ),
            "The one that differs may stand in the middle: compare all rows with the first.",
        ),
        Mistake(
            "groups in which every reward differs from the first",
            lambda rewards, group_size: (
                as_rows(rewards, group_size)[:, 1:] != as_rows(rewards, group_size)[:, :1]
            ).all(1),
            "One reward that differs is enough: `any`, not `all`.",
        ),
        Mistake(
            "numbers in place of bools",
            lambda rewards, group_size: informative_groups(rewards, group_size).to(rewards.dtype),
            "The result selects groups, `rewards[keep]`: it must be bool.",
        ),
        Mistake(
            "groups whose mean differs from the batch's",
            lambda rewards, group_size: as_rows(rewards, group_size).mean(1) != rewards.mean(),
            "Advantages are 0 where a group agrees with *itself*.",
        ),
    ),
    alternatives=(informative_by_loop, informative_by_range, informative_by_std),
    hints=(
        "When is every advantage of a group zero?",
        "A group is informative when any of its rewards differs from its first.",
        "A row for each group:\n\n"
        "    groups = rewards.reshape(-1, group_size)\n"
        "    return (groups != groups[:, :1]).any(dim=...)",
    ),
)
