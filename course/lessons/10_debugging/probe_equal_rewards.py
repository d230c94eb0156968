"""Equal rewards within a group: nothing to learn, whatever other groups got."""

from collections.abc import Iterator

import torch

from rlcourse.checks.declaring import Case, CaseSampler, Spec


def cases(draw: CaseSampler) -> Iterator[Case]:
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


alternatives = (_by_list, _by_expand)
