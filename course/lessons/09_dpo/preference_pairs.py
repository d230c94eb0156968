"""From the rewards of a group to pairs of a better and a worse completion."""

from collections.abc import Iterator
from itertools import combinations

import torch
from torch import Tensor

from rlcourse.algorithms.dpo import preference_pairs
from rlcourse.checks.declaring import Case, CaseSampler, tensor


def cases(draw: CaseSampler) -> Iterator[Case]:
    def case(label: str, rewards: Tensor, group_size: int) -> Case:
        return Case(label, {"rewards": rewards, "group_size": group_size})

    yield case("worked: one right of four", tensor([0.0, 0.0, 1.0, 0.0]), 4)
    yield case("worked: two groups", tensor([1, 0, 1, 0, 1, 1, 1, 1]), 4)
    yield case("all rewards equal: no pair", tensor([1.0, 1.0, 0.0, 0.0]), 2)
    mixed = torch.cat([draw.binary_rewards(6), draw.binary_rewards(6), draw.binary_rewards(6)])
    yield case("rewards of 0 and 1", mixed, 6)
    yield case("three of four right", tensor([1.0, 0.0, 1.0, 1.0]), 4)
    groups, group_size = draw.size(2, 3), 2 * draw.size(2, 3)
    yield case("rewards all different", draw.rewards(groups * group_size), group_size)
    yield case("an odd group", draw.rewards(10), 5)
    yield case("one group", draw.rewards(6), 6)
    yield case("groups of two", draw.rewards(8), 2)
    yield case("rewards of both signs and a tie", tensor([-1.0, 0.5, 0.5, 2.0, -3.0, 0.5]), 6)
    yield case("one group far above the other", tensor([12, 13, 14, 15, 2, 3, 4, 5]), 4)
    # More completions on one side of the mean than on the other, whatever is drawn above.
    yield case("one completion far above the others", tensor([1.0, 10.0, 2.0, 3.0]), 4)
    yield case("one far below the others", tensor([1.0, 2.0, 0.5, 3.0, 2.5, -8.0]), 6)
    yield case("one far above, one far below", tensor([9.0, 1, 2, 0, -7, 1.5, 2.0, 1.0]), 4)
    yield case("a completion alone", draw.rewards(3), 1)
    yield case("float32", draw.rewards(8).float(), 4)


SEEN = "the pairs, in any order"


def _seen(case: Case, pairs: Tensor) -> dict[str, list[str]]:
    """Every pair in words, sorted, and how many rows are used: ties may fall anyhow."""
    rewards, group_size = case.arguments["rewards"].tolist(), case.arguments["group_size"]
    if pairs.numel() == 0:
        return {SEEN: ["no pair"]}
    if pairs.min() < 0 or pairs.max() >= len(rewards):
        return {SEEN: ["a row that does not exist"] * (len(pairs) + 1)}
    found = sorted(
        (a // group_size, b // group_size, rewards[a], rewards[b]) for a, b in pairs.tolist()
    )
    words = [_in_words(*pair) for pair in found]
    return {SEEN: [*words, f"{pairs.unique().numel()} completions in all"]}


def _in_words(group: int, other: int, better: float, worse: float) -> str:
    other_group = f" of group {other}" if other != group else ""
    return f"group {group}: reward {better:.4g} over {worse:.4g}{other_group}"


def _made(rewards: Tensor, group_size: int, pairs_of, offset: bool = True) -> Tensor:
    """Pairs by a rule that gets one group's rewards and returns rows within the group."""
    pairs = []
    for start in range(0, len(rewards), group_size):
        found = pairs_of(rewards[start : start + group_size].tolist())
        pairs += [(a + start * offset, b + start * offset) for a, b in found]
    return torch.tensor(pairs, dtype=torch.long).reshape(-1, 2)


def _order(group: list[float]) -> list[int]:
    return sorted(range(len(group)), key=lambda i: -group[i])


def _outside_in(group: list[float], ties: bool = False) -> list[tuple[int, int]]:
    order = _order(group)
    pairs = zip(order[: len(order) // 2], reversed(order), strict=False)
    return [(a, b) for a, b in pairs if ties or group[a] > group[b]]


def _every(group):
    return [(a, b) if group[a] > group[b] else (b, a)
            for a, b in combinations(range(len(group)), 2) if group[a] != group[b]]  # fmt: skip


def _neighbors(group):
    order = _order(group)
    return [(a, b) for a, b in zip(order[::2], order[1::2], strict=False) if group[a] > group[b]]


def _split_at_mean(group):
    mean = sum(group) / len(group)
    above = [i for i in _order(group) if group[i] > mean]
    return zip(above, [i for i in reversed(_order(group)) if group[i] < mean], strict=False)


def _right_against_wrong(group):
    right = [i for i, reward in enumerate(group) if reward == 1]
    return zip(right, [i for i, reward in enumerate(group) if reward == 0], strict=False)


def _halves(group, skipped=0):
    order, half = _order(group), len(group) // 2
    pairs = zip(order[:half], order[half + skipped :], strict=False)
    return [(a, b) for a, b in pairs if group[a] > group[b]]


def _best_against_rest(group):
    best = _order(group)[0]
    return [(best, i) for i in range(len(group)) if group[i] < group[best]]


def _both_ways(group):
    pairs = _outside_in(group)
    return pairs + [(b, a) for a, b in pairs]


def _in_order(group):
    pairs = [(a, a + 1) for a in range(0, len(group) - 1, 2)]
    return [(a, b) if group[a] > group[b] else (b, a) for a, b in pairs if group[a] != group[b]]


def _outside_in_of_batch(rewards, order):
    half = len(order) // 2
    pairs = torch.stack([order[:half], order.flip(0)[:half]], dim=1)
    return pairs[rewards[pairs[:, 0]] > rewards[pairs[:, 1]]]


def _interleaved(rewards, group_size):
    groups = len(rewards) // group_size
    where = torch.arange(len(rewards)).view(group_size, groups).T.flatten()
    return where[preference_pairs(rewards[where], group_size)]


def _no_shape_when_empty(rewards, group_size):
    pairs = preference_pairs(rewards, group_size).tolist()
    return torch.tensor([tuple(pair) for pair in pairs])


def _by_topk(rewards, group_size):
    groups = rewards.reshape(-1, group_size)
    half, start = group_size // 2, torch.arange(len(groups))[:, None] * group_size
    if half == 0:
        return torch.zeros(0, 2, dtype=torch.long)
    best = groups.topk(half, dim=1).indices + start
    worst = groups.topk(half, dim=1, largest=False).indices + start
    pairs = torch.stack([best.flatten(), worst.flatten()], dim=1)
    return pairs[rewards[pairs[:, 0]] > rewards[pairs[:, 1]]]


def _by_two_pointers(rewards, group_size):
    values, pairs = rewards.tolist(), []
    for group in range(len(values) // group_size):
        rows = sorted(range(group * group_size, (group + 1) * group_size), key=values.__getitem__)
        low, high = 0, len(rows) - 1
        while low < high and values[rows[high]] > values[rows[low]]:
            pairs.append([rows[high], rows[low]])
            low, high = low + 1, high - 1
    return torch.tensor(pairs, dtype=torch.long).view(-1, 2)


alternatives = (_by_topk, _by_two_pointers)
observe = _seen
