"""Where the scalar head reads."""

from collections.abc import Iterator

import torch
from torch import Tensor

from rlcourse.checks.declaring import Case, CaseSampler


def _both_sides(draw: CaseSampler, rows: int, tokens: int) -> Tensor:
    """(N, T) bool: padding before the first and after the last real token."""
    starts = 1 + draw.integers(rows, high=2)
    ends = tokens - 1 - draw.integers(rows, high=2)
    positions = torch.arange(tokens)
    return (positions >= starts[:, None]) & (positions < ends[:, None])


def cases(draw: CaseSampler) -> Iterator[Case]:
    worked = torch.tensor([[1, 1, 1, 0, 0], [1, 1, 1, 1, 1]]).bool()
    yield Case("worked: three tokens, and five", {"mask": worked})
    for label, _, mask in draw.batches():
        yield Case(label, {"mask": mask})
    rows, tokens = draw.size(3, 4), draw.size(7, 9)
    left = draw.mask(rows, tokens).flip(1)
    yield Case("padding on the left", {"mask": left})
    yield Case("padding on both sides", {"mask": _both_sides(draw, rows, tokens)})
    yield Case("a mask of integers", {"mask": draw.mask(3, 6).long()})


def _positions(mask: Tensor) -> Tensor:
    return torch.arange(mask.shape[1]).expand(mask.shape)


def _count(mask: Tensor) -> Tensor:
    return mask.long().sum(1)


def _first_zero(mask):
    padding = torch.cat([~mask.bool(), torch.ones(len(mask), 1) > 0], dim=1)
    return (padding.long().argmax(1) - 1).clamp(min=0)


def _before_first_zero_modulo(mask):
    return ((~mask.bool()).int().argmax(1) - 1) % mask.shape[1]


def _index_by_loop(mask):
    found = []
    for row in mask.tolist():
        real = [t for t, is_real in enumerate(row) if is_real]
        found.append(real[-1] if real else 0)
    return torch.tensor(found)


alternatives = (
    _index_by_loop,
    lambda mask: mask.bool().long().cumsum(1).argmax(1),
)
