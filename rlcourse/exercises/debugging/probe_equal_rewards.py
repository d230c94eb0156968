"""Equal rewards within a group: nothing to learn, whatever other groups got."""

from collections.abc import Iterator

import torch

from rlcourse.algorithms.debugging import probe_equal_rewards
from rlcourse.checks.calling import Case
from rlcourse.checks.cases import CaseSampler
from rlcourse.checks.exercise import Exercise, Mistake
from rlcourse.checks.specs import Spec


def _cases(draw: CaseSampler) -> Iterator[Case]:
    for words, compares in (
        ("compares within groups", "group"),
        ("takes the batch for a group", "batch"),
        ("believes in another layout", "other layout"),
        ("compares with the best of the batch", "best"),
        ("compares with nothing", "nothing"),
    ):
        for n_groups, group_size in ((3, 2), (draw.size(4, 6), draw.size(3, 5)), (4, 4)):
            label = f"an estimator that {words}, {n_groups} groups of {group_size}"
            estimator = Spec("estimator", {"compares": compares})
            yield Case(
                label,
                {"estimator": estimator, "n_groups": n_groups, "group_size": group_size},
            )


def _probe(rewards_of, summary=lambda advantages: advantages.abs().max()):
    def probe(estimator, n_groups, group_size):
        groups = torch.arange(n_groups, dtype=torch.float64)
        return summary(estimator(rewards_of(groups, group_size), group_size))

    return probe


def _usual(groups, group_size):
    return groups.repeat_interleave(group_size)


def _by_list(estimator, n_groups, group_size):
    rewards = [float(i) for i in range(n_groups) for _ in range(group_size)]
    return max(map(abs, estimator(torch.tensor(rewards).double(), group_size)))


def _by_expand(estimator, n_groups, group_size):
    rows = torch.arange(n_groups).double()[:, None].expand(n_groups, group_size)
    advantages = estimator(rows.reshape(-1), group_size)
    return torch.maximum(advantages.max(), -advantages.min())


EXERCISE = Exercise(
    reference=probe_equal_rewards,
    lesson="10_debugging",
    section="Equal rewards",
    points=2,
    difficulty=2,
    minutes=8,
    cases=_cases,
    mistakes=(
        Mistake(
            "the same reward in every group",
            _probe(lambda groups, size: torch.ones(len(groups) * size, dtype=torch.float64)),
            "Then nobody can go wrong: an estimator that compares across groups gives 0, too. "
            "Groups must differ from one another.",
        ),
        Mistake(
            "rewards that are equal across groups and differ within them",
            _probe(lambda groups, size: groups.repeat(size)),
            "The rows of a group are contiguous: `repeat_interleave`, where `repeat` deals them "
            "out in turn.",
        ),
        Mistake(
            "a mean |advantage|",
            _probe(_usual, lambda advantages: advantages.abs().mean()),
            "The largest is asked for: one wrong row in a thousand is wrong.",
        ),
        Mistake(
            "the largest advantage, negative ones left out",
            _probe(_usual, lambda advantages: advantages.max()),
            "An advantage that is negative without a reason is as wrong: take absolute values.",
        ),
        Mistake(
            "a sum of advantages",
            _probe(_usual, lambda advantages: advantages.sum().abs()),
            "A baseline makes advantages cancel, right or wrong: look at each.",
        ),
        Mistake(
            "groups that count from 1",
            _probe(lambda groups, size: (groups + 1).repeat_interleave(size)),
            "Group i gets reward i, and the first is group 0.",
        ),
        Mistake(
            "rewards that were handed over as advantages",
            lambda estimator, n_groups, group_size: torch.tensor(n_groups - 1.0).double(),
            "The estimator is what is probed: call it on the rewards.",
        ),
    ),
    alternatives=(_by_list, _by_expand),
    hints=(
        "Which rewards leave an estimator that compares within groups nothing to say, and one that "
        "compares otherwise a lot?",
        "Equal within a group, different from group to group: 0, 0, …, 1, 1, …, 2, 2, …",
        "    rewards = torch.arange(n_groups, dtype=torch.float64).repeat_interleave(group_size)\n"
        "    return estimator(rewards, ...)...",
    ),
)
