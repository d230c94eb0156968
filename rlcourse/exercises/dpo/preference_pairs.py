"""From the rewards of a group to pairs of a better and a worse completion."""

from collections.abc import Iterator
from itertools import combinations

import torch
from torch import Tensor

from rlcourse.algorithms.dpo import preference_pairs
from rlcourse.checks.calling import Case
from rlcourse.checks.cases import CaseSampler, tensor
from rlcourse.checks.exercise import Exercise, Mistake


def _pair_cases(draw: CaseSampler) -> Iterator[Case]:
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


def _seen(case: Case, pairs: Tensor) -> list[str]:
    """Every pair in words, sorted, and how many rows are used: ties may fall anyhow."""
    rewards, group_size = case.arguments["rewards"].tolist(), case.arguments["group_size"]
    if pairs.numel() == 0:
        return ["no pair"]
    if pairs.min() < 0 or pairs.max() >= len(rewards):
        return ["a row that does not exist"] * (len(pairs) + 1)
    found = sorted(
        (a // group_size, b // group_size, rewards[a], rewards[b]) for a, b in pairs.tolist()
    )
    return [_in_words(*pair) for pair in found] + [f"{pairs.unique().numel()} completions in all"]


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


def _halves(group):
    order, half = _order(group), len(group) // 2
    pairs = zip(order[:half], order[half:], strict=False)
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


EXERCISE = Exercise(
    reference=preference_pairs,
    lesson="09_dpo",
    section="Pairs from a group",
    points=3,
    difficulty=3,
    minutes=15,
    cases=_pair_cases,
    observe=_seen,
    mistakes=(
        Mistake(
            "pairs with the worse completion first",
            lambda rewards, group_size: preference_pairs(rewards, group_size).flip(1),
            "Each pair is (chosen, rejected): the other way round the model learns to be wrong.",
        ),
        Mistake(
            "pairs of completions with equal rewards",
            lambda rewards, group_size: _made(
                rewards, group_size, lambda group: _outside_in(group, ties=True)
            ),
            "Neither is better, so there is nothing to learn but noise: leave ties out.",
        ),
        Mistake(
            "pairs across groups",
            lambda rewards, group_size: preference_pairs(rewards, len(rewards)),
            "Completions of different prompts answer different questions, and the constant that "
            "cancels in a pair is a prompt's own: compare within a group.",
        ),
        Mistake(
            "groups laid out as every B-th row",
            _interleaved,
            "The rows of one prompt are contiguous: group i is rows i·G to i·G + G − 1.",
        ),
        Mistake(
            "rows counted from the start of each group",
            lambda rewards, group_size: _made(rewards, group_size, _outside_in, offset=False),
            "The pairs index the whole batch: add the row at which the group starts.",
        ),
        Mistake(
            "the best against the worst only, one pair a group",
            lambda rewards, group_size: _made(
                rewards, group_size, lambda group: _outside_in(group)[:1]
            ),
            "Go on with the second best against the second worst, and so on, while they differ.",
        ),
        Mistake(
            "the best against the worst only, equal or not",
            lambda rewards, group_size: _made(
                rewards, group_size, lambda group: _outside_in(group, ties=True)[:1]
            ),
            "A group whose rewards are all equal has no better and no worse; and where it has, the "
            "second best and the second worst make a pair, too.",
        ),
        Mistake(
            "every pair twice, both ways round",
            lambda rewards, group_size: _made(rewards, group_size, _both_ways),
            "Halfway through the ranking the worse ones come first: stop at G/2, and ask for >, "
            "not for ≠.",
        ),
        Mistake(
            "every better completion with every worse one",
            lambda rewards, group_size: _made(rewards, group_size, _every),
            "No completion may be in two pairs: a group with many ties broken would count more "
            "than others.",
        ),
        Mistake(
            "the best completion against all that are worse",
            lambda rewards, group_size: _made(rewards, group_size, _best_against_rest),
            "No completion may be in two pairs: the best would be learned several times over.",
        ),
        Mistake(
            "the upper half of the ranking against the lower half, from the top down in both",
            lambda rewards, group_size: _made(rewards, group_size, _halves),
            "The best meets the *worst*, then inward from both ends: turn the lower half around.",
        ),
        Mistake(
            "the pairs of the first group only",
            lambda rewards, group_size: preference_pairs(rewards[:group_size], group_size),
            "Every group has pairs to give: return after the loop, not inside.",
        ),
        Mistake(
            "neighbors in the ranking",
            lambda rewards, group_size: _made(rewards, group_size, _neighbors),
            "The clearest comparison is between the ends: best with worst, then inward.",
        ),
        Mistake(
            "completions paired in the order in which they were sampled",
            lambda rewards, group_size: _made(rewards, group_size, _in_order),
            "Sort each group first; by chance neighbors are often equally good and teach nothing.",
        ),
        Mistake(
            "completions above their group's mean against those below",
            lambda rewards, group_size: _made(rewards, group_size, _split_at_mean),
            "On rewards of 0 and 1 that is the same; in general the halves of the ranking are "
            "paired, and the mean need not split it in the middle.",
        ),
        Mistake(
            "rewards of exactly 1 against rewards of exactly 0",
            lambda rewards, group_size: _made(rewards, group_size, _right_against_wrong),
            "Any two different rewards make a preference, whatever numbers they are.",
        ),
        Mistake(
            "a result that loses its shape when there is no pair",
            _no_shape_when_empty,
            "A batch without any pair happens: return a long tensor of shape (0, 2), "
            "with `dtype=torch.long` and `.reshape(-1, 2)`.",
            telling=2,
        ),
        Mistake(
            "a result that is float when there is no pair",
            lambda rewards, group_size: torch.tensor(
                preference_pairs(rewards, group_size).tolist()
            ).reshape(-1, 2),
            "An empty list becomes a float tensor, and rows are indices: say `dtype=torch.long`.",
        ),
    ),
    alternatives=(_by_topk, _by_two_pointers),
    hints=(
        "Rank one group from best to worst. Who meets whom, and when do you stop?",
        "With `order` the rows from best to worst, the k-th of `order` meets the k-th of "
        "`order[::-1]`, for k below G/2, if its reward is larger.",
        "A loop over groups:\n\n"
        "    pairs = []\n"
        "    for start in range(0, len(rewards), group_size):\n"
        "        group = rewards[start : start + group_size]\n"
        "        order = (start + group.argsort(descending=True)).tolist()\n"
        "        for chosen, rejected in zip(order[: group_size // 2], order[::-1]):\n"
        "            if ...:\n"
        "                pairs.append((chosen, rejected))\n"
        "    return torch.tensor(pairs, dtype=torch.long).reshape(-1, 2)",
    ),
)
