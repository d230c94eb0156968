"""Which groups say anything."""

from collections.abc import Iterator

import torch

from rlcourse.checks.declaring import Case, CaseSampler, tensor


def as_rows(rewards, group_size):
    return rewards.reshape(-1, group_size)


def columns(rewards, group_size):
    """Groups of every B-th row, which is wrong."""
    return rewards.reshape(group_size, -1).T


def cases(draw: CaseSampler) -> Iterator[Case]:
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
    yield case("all but the first agree", tensor([1.0, 0, 0, 2, 3, 4]), 3)
    yield case("a mean of 0", tensor([1.0, -1, 0, 0]), 2)
    yield case("rewards that differ by 1e-5", tensor([0.5, 0.5 + 1e-5, 0.5, 0.5]), 2)
    yield case("groups of one", draw.rewards(3), 1)
    square = torch.cat([torch.ones(3), tensor([1.0, 0, 1]), torch.zeros(3)]).double()
    yield case("as many groups as rows in a group", square, 3)
    yield case("float32", draw.binary_rewards(8).float(), 4)


def informative_by_loop(rewards, group_size):
    groups = [rewards[i : i + group_size] for i in range(0, len(rewards), group_size)]
    return torch.tensor([len(set(group.tolist())) > 1 for group in groups])


def informative_by_std(rewards, group_size):
    return as_rows(rewards, group_size).std(dim=1, correction=0) > 0


def _mean_inside(rewards, group_size):
    mean = as_rows(rewards, group_size).mean(1)
    return (mean > 0) & (mean < 1)


alternatives = (informative_by_loop, informative_by_std)
