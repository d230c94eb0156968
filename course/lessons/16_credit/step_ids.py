"""Which step each token belongs to."""

from collections.abc import Iterator

import torch
from torch import Tensor

from rlcourse.checks.declaring import Case, CaseSampler, Sketch, mask_of


def cases(draw: CaseSampler) -> Iterator[Case]:
    def case(label: str, rows: list[list[int]] | Tensor, lengths: list[int], newline: int = 9):
        tokens = torch.as_tensor(rows)
        mask = mask_of(torch.tensor(lengths), tokens.shape[1])
        return Case(label, {"tokens": tokens, "mask": mask, "newline": newline})

    yield case("worked: three steps", [[5, 4, 9, 6, 9, 7, 2]], [7])
    yield case("one step", [[5, 4, 6, 2]], [4])
    yield case("a newline at the end", [[5, 9, 6, 4, 9], [9, 3, 4, 9, 5]], [5, 5])
    yield case("two newlines in a row", [[5, 9, 9, 6, 2], [5, 6, 9, 9, 9]], [5, 5])
    yield case("a newline first", [[9, 5, 6, 9, 2], [5, 6, 9, 4, 2]], [5, 5])
    yield case("padded rows", [[5, 9, 6, 2, 2, 2], [5, 9, 6, 9, 7, 2]], [4, 6])
    yield case("newlines in the padding", [[5, 9, 6, 9, 9, 9], [5, 6, 9, 7, 9, 2]], [3, 6])
    yield case("a newline with id 0", [[5, 0, 6, 0, 0], [4, 3, 0, 7, 2]], [3, 5], 0)
    yield case("an empty row", [[9, 9, 9], [5, 9, 6]], [0, 3])
    rows, tokens = draw.shape()
    drawn = draw.integers(rows, tokens + 3, high=3)
    yield case("random tokens", drawn, draw.lengths(rows, tokens + 3).tolist(), 1)
    side = draw.size(4, 6)
    drawn = draw.integers(side, side, high=3)
    yield case("N equals T", drawn, draw.lengths(side, side).tolist(), 1)
    drawn = draw.integers(draw.size(6, 8), 14, high=4)
    yield case("a larger batch", drawn, draw.lengths(len(drawn), 14).tolist(), 2)
    floats = case("a float mask", [[5, 9, 6, 9, 7], [5, 9, 4, 9, 9]], [5, 3])
    yield Case(floats.label, floats.arguments | {"mask": floats.arguments["mask"].double()})


def line_by_line(tokens, mask, newline):
    ends = ((tokens == newline) & mask.bool()).long()
    seen = ends.cumsum(1)
    ids = seen - ends
    return ids * mask.long()


def by_loop(tokens, mask, newline):
    ids = torch.zeros_like(tokens)
    for i in range(len(tokens)):
        step = 0
        for t in range(tokens.shape[1]):
            if mask[i, t]:
                ids[i, t] = step
                step += int(tokens[i, t] == newline)
    return ids


sketch = Sketch(line_by_line)
alternatives = (by_loop,)
oracle = by_loop
