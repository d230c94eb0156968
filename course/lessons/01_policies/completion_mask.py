"""Where a completion ends."""

from collections.abc import Iterator

import torch

from rlcourse.checks.declaring import Case, CaseSampler, Sketch


def cases(draw: CaseSampler) -> Iterator[Case]:
    def case(label: str, rows: list[list[int]], eos_id: int) -> Case:
        return Case(label, {"tokens": torch.tensor(rows), "eos_id": eos_id})

    yield case("worked: 7 8 EOS and padding", [[7, 8, 2, 2, 2], [7, 2, 2, 2, 2]], 2)
    yield case("no EOS: cut off", [[5, 6, 7, 8]], 2)
    yield case("EOS first", [[2, 5, 6, 2]], 2)
    yield case("EOS last", [[5, 6, 2]], 2)
    yield case("text after EOS", [[5, 2, 6, 7, 2, 8], [5, 6, 7, 2, 8, 9]], 2)
    yield case("rows of every kind", [[4, 4, 4], [4, 3, 4], [3, 3, 3], [4, 3, 3]], 3)
    yield case("an EOS with id 0", [[5, 0, 0, 0], [5, 6, 7, 8], [1, 5, 0, 4]], 0)
    yield case("padding with another token", [[5, 6, 2, 0, 0], [5, 6, 7, 2, 0]], 2)
    rows, tokens = draw.shape()
    yield Case("random tokens", {"tokens": draw.integers(rows, tokens, high=4), "eos_id": 1})
    side = draw.size(3, 5)
    yield Case("N equals T", {"tokens": draw.integers(side, side, high=5), "eos_id": 1})
    large = draw.integers(draw.size(7, 9), draw.size(12, 14), high=9)
    yield Case("a larger batch", {"tokens": large, "eos_id": 4})


def _by_first_in_batch(tokens, eos_id):
    columns = (tokens == eos_id).any(0)
    first = int(columns.int().argmax()) if columns.any() else tokens.shape[1]
    return (torch.arange(tokens.shape[1]) <= first).expand_as(tokens).clone()


def _by_search(tokens, eos_id):
    rows = []
    for row in tokens.tolist():
        length = row.index(eos_id) + 1 if eos_id in row else len(row)
        rows.append([t < length for t in range(len(row))])
    return torch.tensor(rows)


def _by_argmax(tokens, eos_id):
    is_eos = tokens == eos_id
    first = torch.where(is_eos.any(1), is_eos.int().argmax(1), tokens.shape[1])
    return torch.arange(tokens.shape[1]) <= first[:, None]


def line_by_line(tokens, eos_id):
    is_eos = (tokens == eos_id).long()
    seen = is_eos.cumsum(1)
    before = seen - is_eos
    mask = before == 0
    return mask


sketch = Sketch(line_by_line)
alternatives = (_by_search, _by_argmax)
