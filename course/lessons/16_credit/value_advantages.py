"""What each step added to the value."""

from collections.abc import Iterator

import torch
from torch import Tensor

from rlcourse.checks.declaring import Case, CaseSampler, Sketch, tensor
from rlcourse.courses.modules import beside

shared = beside(__file__, "rows_of_steps.py")


def cases(draw: CaseSampler) -> Iterator[Case]:
    def case(label: str, values: Tensor, outcomes: Tensor, lengths: list[list[int]]) -> Case:
        """`lengths` are the tokens of each step, row by row."""
        ids, mask = shared.tokens_of(lengths)
        return Case(label, {"values": values, "outcomes": outcomes, "ids": ids, "mask": mask})

    def drawn(rows: int, steps: int, extra: int = 0) -> tuple[Tensor, Tensor, list[list[int]]]:
        """Values, also of steps that a row does not have; one row has them all."""
        counts = draw.lengths(rows, steps).tolist()
        lengths = [[draw.integer(1, 3) for _ in range(n)] for n in counts]
        values = draw.uniform(rows, steps + extra, low=0.05, high=0.95)
        return values, draw.binary_rewards(rows), lengths

    worked = tensor([[0.2, 0.5, 0.9], [0.2, 0.5, 0.05]])
    yield case("worked: two answers", worked, tensor([1.0, 0]), [[2, 2, 1], [2, 2, 1]])
    shorter = tensor([[0.2, 0.4, 0.7], [0.2, 0.1, 0.6]])
    yield case("an answer with fewer steps", shorter, tensor([1.0, 1]), [[1, 2, 2], [2, 1]])
    yield case("one step", tensor([[0.3], [0.6]]), tensor([1.0, 0]), [[2], [3]])
    yield case("random", *drawn(4, 3))
    yield case("columns that no row needs", *drawn(3, 2, extra=2))
    yield case("a column that no row needs", *drawn(5, 4, extra=1))
    yield case("as many rows as steps", *drawn(4, 4))
    yield case("more columns than steps", *drawn(4, 3, extra=2))
    values, _, lengths = drawn(5, 3)
    yield case("outcomes between 0 and 1", values, draw.uniform(5), lengths)
    values, _, lengths = drawn(4, 3)
    yield case("outcomes of either sign", values, draw.rewards(4), lengths)
    yield case(
        "values that do not change",
        torch.full((3, 3), 0.5).double(),
        tensor([0.5, 1, 0]),
        [[1, 2, 1]] * 3,
    )
    yield shared.with_ids_on_padding(case("ids that go on in the padding", *drawn(4, 3)))
    yield shared.in_dtype(case("a float mask", *drawn(4, 3)), torch.float64, "mask")
    yield shared.in_dtype(case("float32", *drawn(4, 3)), torch.float32, "values", "outcomes")
    yield case("a larger batch", *drawn(draw.size(8, 10), 5))


def line_by_line(values, outcomes, ids, mask):
    last = (ids * mask.long()).amax(1, keepdim=True)
    place = torch.arange(values.shape[1])
    following = torch.cat([values[:, 1:], values[:, -1:]], dim=1)
    after = torch.where(place == last, outcomes[:, None], following)
    gained = after - values
    per_token = gained.gather(1, ids)
    return per_token * mask


def by_loop(values, outcomes, ids, mask):
    result = torch.zeros(ids.shape, dtype=values.dtype)
    for i in range(len(ids)):
        own = ids[i][mask[i].bool()]
        steps = int(own.max()) + 1
        known = [*values[i, :steps].tolist(), float(outcomes[i])]
        for t in range(len(own)):
            result[i, t] = known[own[t] + 1] - known[own[t]]
    return result


def by_last_difference(values, outcomes, ids, mask):
    """Differences of neighbors, and the last step, which every row has, on its own."""
    real = mask.bool()
    last = ids.masked_fill(~real, 0).max(1).values
    rows = torch.arange(len(values))
    gained = torch.zeros_like(values)
    gained[:, :-1] = values[:, 1:] - values[:, :-1]
    gained[rows, last] = outcomes - values[rows, last]
    return gained.gather(1, ids).masked_fill(~real, 0)


def _last_column_alone(values, outcomes, ids, mask):
    after = torch.cat([values[:, 1:], outcomes[:, None]], dim=1)
    return (after - values).gather(1, ids) * mask


def _end_of_the_longest(values, outcomes, ids, mask):
    """One last step for the whole batch."""
    last = int((ids * mask.long()).max())
    after = torch.cat([values[:, 1:], values[:, -1:]], dim=1)
    after[:, last] = outcomes
    return (after - values).gather(1, ids) * mask


def _spread_over_the_tokens(values, outcomes, ids, mask):
    counts = torch.zeros_like(values).scatter_add(1, ids, mask.to(values.dtype))
    return by_last_difference(values, outcomes, ids, mask) / counts.clamp(min=1).gather(1, ids)


sketch = Sketch(line_by_line)
alternatives = (by_loop, by_last_difference)
oracle = by_loop
