"""Means over real tokens."""

from collections.abc import Iterator

import torch

from rlcourse.algorithms.policies import masked_mean  # noqa: F401  (the page names it)
from rlcourse.checks.declaring import Case, CaseSampler, Sketch, tensor

WORKED = tensor([[-0.5, -1.5], [-4.0, -9.0]])


WORKED_MASK = torch.tensor([[True, True], [True, False]])


WITH_ZERO = tensor([[0.0, -2.0], [-4.0, -9.0]])  # a token that was certain


def cases(draw: CaseSampler) -> Iterator[Case]:
    yield Case("worked: two rows", {"x": WORKED, "mask": WORKED_MASK})
    yield Case("worked: two rows, dim 1", {"x": WORKED, "mask": WORKED_MASK, "dim": 1})
    yield Case("a real token of value 0", {"x": WITH_ZERO, "mask": WORKED_MASK})
    for label, logprobs, mask in draw.batches():
        yield Case(label, {"x": logprobs, "mask": mask})
    for label, logprobs, mask in draw.batches():
        yield Case(f"{label}, dim 1", {"x": logprobs, "mask": mask, "dim": 1})
    rows, tokens = draw.shape()
    large = 3 + draw.normal(rows, tokens)  # every sum is above 1
    yield Case("dim 0", {"x": large, "mask": draw.mask(rows, tokens), "dim": 0})
    holes = torch.tensor([[True, False, True], [False, False, True]])
    zeros = draw.integers(rows, tokens, high=2).double()
    yield Case("values of 0 and 1", {"x": zeros, "mask": draw.mask(rows, tokens)})
    yield Case("a mask with holes, dim −1", {"x": draw.normal(2, 3), "mask": holes, "dim": -1})


def _mean_by_where(x, mask, dim=None):
    kept = torch.where(mask.bool(), x, torch.zeros_like(x))
    weights = torch.where(mask.bool(), torch.ones_like(x), torch.zeros_like(x))
    if dim is None:
        return kept.sum() / weights.sum().clamp(min=1)
    return kept.sum(dim) / weights.sum(dim).clamp(min=1)


def _mean_by_loop(x, mask, dim=None):
    if dim is None:
        chosen = [x[i, t] for i, t in mask.nonzero().tolist()]
        return torch.stack(chosen).mean() if chosen else 0 * x.sum()
    lines = x.unbind(1 - dim % 2), mask.unbind(1 - dim % 2)
    return torch.stack([v[m.bool()].mean() if m.any() else 0 * v.sum() for v, m in zip(*lines)])  # noqa: B905


def line_by_line(x, mask, dim=None):
    real = mask.to(x.dtype)
    total = (x * real).sum(dim)
    count = real.sum(dim)
    mean = total / count.clamp(min=1)
    return mean


sketch = Sketch(line_by_line)
alternatives = (_mean_by_where, _mean_by_loop)
