"""The score of a rubric: weighted items, some of them essential."""

from collections.abc import Iterator
from dataclasses import replace

import torch
from torch import Tensor

from rlcourse.algorithms.judges import rubric_scores
from rlcourse.checks.declaring import Case, CaseSampler, Sketch, tensor


def cases(draw: CaseSampler) -> Iterator[Case]:
    def case(label: str, verdicts: Tensor, weights: Tensor, essential: list[bool]) -> Case:
        arguments = {"verdicts": verdicts, "weights": weights, "essential": torch.tensor(essential)}
        return Case(label, arguments)

    def random(rows: int, items: int) -> Tensor:
        """At least one text holds everything, and one nothing but its first item."""
        verdicts = (draw.uniform(rows, items) < 0.6).double()
        verdicts[0] = 1
        verdicts[-1] = torch.eye(items, dtype=torch.float64)[0]
        return verdicts

    worked = tensor([[1.0, 1, 0], [0, 1, 1], [1, 0, 0]])
    yield case(
        "worked: weights of 3, 2 and 1, the first essential",
        worked,
        tensor([3.0, 2, 1]),
        [True, False, False],
    )
    none = [False] * 4
    yield case(
        "no essential item", random(draw.size(4, 6), 4), draw.uniform(4, low=0.5, high=3), none
    )
    rows = draw.size(5, 7)
    yield case(
        "two essential items",
        random(rows, 4),
        draw.uniform(4, low=1, high=4),
        [True, False, True, False],
    )
    yield case("every item essential", random(5, 3), draw.uniform(3, low=1, high=4), [True] * 3)
    last = [False, False, True, True]
    yield case("the last two essential", random(6, 4), draw.uniform(4, low=1, high=4), last)
    crossed = tensor([[1.0, 0, 1], [0, 1, 1], [1, 1, 0], [0, 0, 1]])
    yield case(
        "one of two essential items fails",
        crossed,
        draw.uniform(3, low=1, high=4),
        [True, True, False],
    )
    yield case(
        "weights that add up to 1", random(4, 3), tensor([0.5, 0.3, 0.2]), [False, True, False]
    )
    light = tensor([2.0, 0.0, 1.5])
    yield case(
        "an essential item of weight 0",
        tensor([[1.0, 1, 0], [1, 0, 1]]),
        light,
        [False, True, False],
    )
    yield case(
        "as many texts as items", random(3, 3), draw.uniform(3, low=1, high=5), [False, False, True]
    )
    yield case(
        "more items than texts", random(2, 5), draw.uniform(5, low=1, high=5), [True] + [False] * 4
    )
    yield case("one item", tensor([[1.0], [0.0]]), tensor([0.7]), [False])
    yield case(
        "nothing holds", torch.zeros(3, 2).double(), draw.uniform(2, low=1, high=2), [False, False]
    )
    yield case(
        "float32",
        random(4, 3).float(),
        draw.uniform(3, low=1, high=2).float(),
        [False, True, False],
    )
    yield replace(case("no weight", random(3, 2), tensor([0.0, 0.0]), [False, False]), raises=True)


def line_by_line(verdicts, weights, essential):
    total = weights.sum()
    if total <= 0:
        raise ValueError("no item has a weight")
    score = (verdicts * weights).sum(dim=1) / total
    passed = (verdicts[:, essential] > 0).all(dim=1)
    result = torch.where(passed, score, 0.0)
    return result


def by_loop(verdicts, weights, essential):
    if float(weights.sum()) == 0:
        raise ValueError("no item has a weight")
    scores = []
    for row in verdicts.tolist():
        pairs = zip(row, weights.tolist(), strict=True)
        needed = [v for v, must in zip(row, essential.tolist(), strict=True) if must]
        scores.append(sum(v * w for v, w in pairs) / float(weights.sum()) * all(needed))
    return torch.tensor(scores, dtype=weights.dtype)


def _no_weight(verdicts, weights, essential):
    try:
        return rubric_scores(verdicts, weights, essential)
    except ValueError:
        return torch.zeros_like(verdicts[:, 0])


sketch = Sketch(line_by_line)
alternatives = (by_loop,)
oracle = by_loop
