"""The same tokens in another packing: a row's values moved to where its tokens stand there."""

from collections.abc import Iterator
from dataclasses import replace

import torch
from torch import Tensor

from rlcourse.checks.declaring import Case, CaseSampler, Sketch, tensor


def _places(draw: CaseSampler, counts: list[int], width: int) -> Tensor:
    """(N, width) bool with so many ones in each row, at random places."""
    mask = torch.zeros(len(counts), width, dtype=torch.bool)
    for row, count in zip(mask, counts, strict=True):
        row[draw.uniform(width).argsort()[:count]] = True
    return mask


def cases(draw: CaseSampler) -> Iterator[Case]:
    def case(label: str, values: Tensor, mask: Tensor, target: Tensor) -> Case:
        return Case(label, {"values": values, "mask": mask, "target": target})

    def random(counts: list[int], wide: int, other: int):
        masks = _places(draw, counts, wide), _places(draw, counts, other)
        return draw.logprobs(len(counts), wide), *masks

    two = tensor([[0, 0, 0, 1, 1, 0, 1]]) > 0, tensor([[0, 1, 1, 0, 1]]) > 0
    yield case("worked: a longer question", tensor([[0, 0, 0, -1.0, -2, 0, -3]]), *two)
    rows = draw.size(3, 4)
    counts = [draw.integer(2, 4) for _ in range(rows)]
    yield case("the other is wider", *random(counts, 6, 9))
    yield case("the other is narrower", *random(counts, 10, 7))
    yield case("as wide, at other places", *random(counts, 8, 8))
    more = [draw.integer(1, 3) for _ in range(6)]
    yield case("many rows", *random(more, 9, 7))
    yield case("one row", *random([3], 7, 9))
    values, mask, _ = random(counts, 8, 8)
    yield case("the same places", values, mask, mask)
    yield case("masks of numbers", *(x.double() for x in random(counts, 9, 8)))
    yield case(
        "masks of whole numbers",
        draw.logprobs(2, 5),
        *(_places(draw, [2, 3], 5).long() for _ in range(2)),
    )
    yield case("a row without any", *random([2, 0, 3], 7, 8))
    yield case("no token in any row", *random([0, 0], 4, 5))
    yield case("every place", *random([4, 4], 4, 4))
    yield case(
        "float32", *(x.float() if x.is_floating_point() else x for x in random(counts, 9, 7))
    )
    one_less = _places(draw, [2, 2], 6), _places(draw, [2, 1], 6)
    fewer = case("a row with fewer in the other", draw.logprobs(2, 6), *one_less)
    yield replace(fewer, raises=True)
    crossed = _places(draw, [3, 1], 6), _places(draw, [1, 3], 6)
    only_in_total = case("rows that are equal only in total", draw.logprobs(2, 6), *crossed)
    yield replace(only_in_total, raises=True)


def line_by_line(values, mask, target):
    here = mask.bool()
    there = target.bool()
    equal = (here.sum(1) == there.sum(1)).all()
    if not equal:
        raise ValueError("the masks do not fit together")
    taken = values[here]
    empty = values.new_zeros(target.shape)
    moved = empty.masked_scatter(there, taken)
    return moved


def first(mask):
    """As many ones in each row, in its first columns."""
    return torch.arange(mask.shape[1]) < mask.sum(1, keepdim=True)


def last(mask):
    return first(mask).flip(1)


def row_by_row(taken, mask, change):
    return torch.cat([change(row) for row in taken.split(mask.sum(1).tolist())])


def flipped(row):
    return row.flip(0)


def in_order(row):
    return row.sort().values


def by_loop(values, mask, target):
    if mask.bool().sum(1).tolist() != target.bool().sum(1).tolist():
        raise ValueError("each row must have as many tokens in both masks")
    moved = torch.zeros(target.shape, dtype=values.dtype)
    for i in range(len(values)):
        moved[i, target[i].bool()] = values[i, mask[i].bool()]
    return moved


def _one_shift(values, mask, target):
    moved = 0 * by_loop(values, mask, target)
    for i, (row, here, there) in enumerate(zip(values, mask.int(), target.int(), strict=True)):
        shifted = here.nonzero().flatten() + there.argmax() - here.argmax()
        for column, value in zip(shifted.tolist(), row[here > 0], strict=True):
            moved[i, column : column + 1] = value
    return moved * target


sketch = Sketch(line_by_line, first, last, row_by_row, flipped, in_order)
alternatives = (by_loop,)
