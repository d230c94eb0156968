"""A reward that asks the group, not the truth."""

from collections.abc import Iterator

import torch

from rlcourse.checks.declaring import Case, CaseSampler, Sketch


def cases(draw: CaseSampler) -> Iterator[Case]:
    a, b, c, d = (str(draw.integer(*r)) for r in ((31, 59), (71, 99), (11, 29), (101, 140)))

    def case(label: str, answers: list, group_size: int) -> Case:
        return Case(label, {"answers": answers, "group_size": group_size})

    yield case("worked: 14, 18, 14, none", ["14", "18", "14", None], 4)
    yield case("two groups, two winners", [a, a, b, b, b, a], 3)
    yield case("three groups", [a, b, a, b, c, c, d, a, d], 3)
    yield case("more groups than completions", [a, a, b, c, c, c, d, d], 2)
    yield case("one group wins the whole batch", [a, a, a, a, b, c, b, d], 4)
    yield case("neighbors in other groups", [a, b, b, a, b, a, c, c], 4)
    yield case("nobody answers", [None, None, None, a, b, b], 3)
    yield case("None is the commonest", [None, None, None, a, a, None, b, None], 4)
    yield case("None comes first", [None, None, a, b, None, c, c, c], 4)
    yield case("a tie", [b, a, a, b, c, c, d, d], 4)
    yield case("a tie, the smaller first", [a, b, b, a], 4)
    yield case("all different", [b, a, c, d, a, b], 3)
    yield case("fewer than half agree", [a, c, b, c, d, "7", a, b, c, d, d, "5"], 6)
    yield case("all agree", [a, a, a, b, b, b], 3)
    yield case("groups of one", [a, None, b], 1)
    size = draw.size(5, 6)
    drawn = draw.integers(3 * size, high=4).tolist()
    answers = [None if v == 3 else str(10 + v) for v in drawn]
    yield case("a larger batch", answers, size)
    yield case("as many groups as completions", [a, b, b, c, c, a, d, a, d], 3)


def lonely(votes):
    return min(votes, key=votes.count)


def last_of_a_tie(votes):
    return max(reversed(votes), key=votes.count)


def smallest_of_a_tie(votes):
    return max(sorted(votes), key=votes.count)


def over_half(votes, size):
    best = max(votes, key=votes.count)
    return best if 2 * votes.count(best) > size else ""


def tied(votes):
    return {v for v in votes if votes.count(v) == max(map(votes.count, votes))}


def line_by_line(answers, group_size):
    starts = range(0, len(answers), group_size)
    groups = [answers[i : i + group_size] for i in starts]
    votes = [[a for a in group if a is not None] for group in groups]
    winners = [max(v, key=v.count) if v else "" for v in votes]
    rows = [[float(a == w) for a in g] for g, w in zip(groups, winners, strict=True)]
    rewards = [r for row in rows for r in row]
    return torch.tensor(rewards)


def by_tensor(answers, group_size):
    """Pairwise agreement, summed; of equal sums the first column wins."""
    names = {a: i for i, a in enumerate(dict.fromkeys(answers)) if a is not None}
    ids = torch.tensor([names.get(a, -1) for a in answers]).reshape(-1, group_size)
    same = (ids[:, :, None] == ids[:, None, :]) & (ids >= 0)[:, :, None]
    first = same.sum(2).argmax(1, keepdim=True)
    return ((ids == ids.gather(1, first)) & (ids >= 0)).float().flatten()


sketch = Sketch(line_by_line, lonely, last_of_a_tie, smallest_of_a_tie, over_half, tied)
alternatives = (by_tensor,)
