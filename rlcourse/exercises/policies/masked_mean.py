"""Means over real tokens."""

from collections.abc import Iterator

import torch

from rlcourse.algorithms.policies import masked_mean
from rlcourse.checks.calling import Case
from rlcourse.checks.cases import CaseSampler, tensor
from rlcourse.checks.exercise import Exercise, Mistake
from rlcourse.checks.sketch import Sketch

WORKED = tensor([[-0.5, -1.5], [-4.0, -9.0]])
WORKED_MASK = torch.tensor([[True, True], [True, False]])
WITH_ZERO = tensor([[0.0, -2.0], [-4.0, -9.0]])  # a token that was certain


def _mean_cases(draw: CaseSampler) -> Iterator[Case]:
    yield Case("worked: two rows", {"x": WORKED, "mask": WORKED_MASK})
    yield Case("worked: two rows, dim 1", {"x": WORKED, "mask": WORKED_MASK, "dim": 1})
    yield Case("a real token of value 0", {"x": WITH_ZERO, "mask": WORKED_MASK})
    for label, logprobs, mask in draw.batches():
        yield Case(label, {"x": logprobs, "mask": mask})
    for label, logprobs, mask in draw.batches():
        yield Case(f"{label}, dim 1", {"x": logprobs, "mask": mask, "dim": 1})
    rows, tokens = draw.shape()
    yield Case("dim 0", {"x": draw.normal(rows, tokens), "mask": draw.mask(rows, tokens), "dim": 0})
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


def _mean_by_weights(x, mask, dim=None):
    weights = mask.to(x.dtype)
    count = weights.sum() if dim is None else weights.sum(dim, keepdim=True)
    weights = weights / torch.where(count > 0, count, torch.ones_like(count))
    return (x * weights).sum(dim)


def line_by_line(x, mask, dim=None):
    real = mask.to(x.dtype)
    total = (x * real).sum(dim)
    count = real.sum(dim)
    mean = total / count.clamp(min=1)
    return mean


_edit = Sketch(line_by_line).edit
_MEAN = "total / count.clamp(min=1)"


EXERCISE = Exercise(
    reference=masked_mean,
    lesson="01_policies",
    section="Averages over real tokens",
    points=2,
    difficulty=1,
    minutes=6,
    differentiable=("x",),
    cases=_mean_cases,
    mistakes=(
        Mistake(
            "a sum over real tokens, divided by all positions",
            _edit("the average", _MEAN, "(x * real).mean(dim)"),
            "Padding is no token: divide by how many entries of the mask are 1, `mask.sum()`.",
        ),
        Mistake(
            "a mean over padding as well",
            _edit("the average", _MEAN, "x.mean(dim)"),
            "The mask says which entries are tokens; here it is never used.",
        ),
        Mistake(
            "a mean that is NaN where no token is real",
            _edit("no real token", "count.clamp(min=1)", "count"),
            "An empty row has a sum of 0 and a count of 0: keep the count at 1 at least, "
            "`.clamp(min=1)`, and the mean is 0.",
        ),
        Mistake(
            "a sum divided by how many values are not 0",
            _edit("the count", "real.sum(dim)", "(x * real != 0).sum(dim)"),
            "A real token may well have the value 0: a log-prob of 0 is certainty. Count the ones "
            "of the mask.",
            telling=2,
        ),
        Mistake(
            "a sum over padding as well, divided by the number of real tokens",
            _edit("the padding", "(x * real)", "x"),
            "What stands on padding must not be added: `(x * mask).sum()`.",
        ),
        Mistake(
            "a mean over everything for `dim=0`, which `if dim` takes for none",
            _edit("dim 0", "real = mask", "dim = dim or None\n    real = mask"),
            "0 is false in Python, and a dimension all the same: ask `dim is None`.",
            telling=1,
        ),
        Mistake(
            "the mean of the rows' means",
            _edit(
                "the dimension",
                "return mean",
                "return masked_mean(x, mask, 1).mean() if dim is None else mean",
            ),
            "With dim=None every token weighs the same; a mean of means gives the tokens of a "
            "short row more weight than those of a long one.",
        ),
        Mistake(
            "`x[mask].mean()`, which knows no `dim` and is NaN where no token is real",
            _edit("the average", _MEAN, "x[mask.bool()].mean()"),
            "Selecting flattens x, so there are no rows left to average along; sum, count and "
            "divide in their place.",
        ),
        Mistake(
            "`x[mask].mean()`, which knows no `dim`, no float mask and no empty one",
            _edit("the average", _MEAN, "x[mask].mean()"),
            "Selecting flattens x and wants a bool mask; sum, count and divide in its place.",
        ),
        Mistake(
            "a 0/0 that is turned into 0 afterwards",
            _edit("no real token", _MEAN, "torch.nan_to_num(total / count)"),
            "The value is mended and the gradient is still NaN, which one step later is in every "
            "weight: keep the count at 1 at least.",
        ),
        Mistake(
            "one mean over everything, whatever `dim` is",
            _edit(
                "the dimension",
                "(x * real).sum(dim)",
                "(x * real).sum()",
                "real.sum(dim)",
                "real.sum()",
            ),
            "With a `dim`, both sums run over that dimension only.",
        ),
        Mistake(
            "a mean per row, also where `dim` is None or 0",
            _edit(
                "the dimension",
                "(x * real).sum(dim)",
                "(x * real).sum(1)",
                "real.sum(dim)",
                "real.sum(1)",
            ),
            "`dim` says which dimension disappears; None means all of them.",
        ),
        Mistake(
            "sums along `dim`, divided by the count of the whole mask",
            _edit("the count", "real.sum(dim)", "real.sum()"),
            "Each row has its own number of real tokens: sum the mask along `dim`, too.",
        ),
        Mistake(
            "a mean that keeps the dimension it was taken over",
            _edit(
                "the shape", "return mean", "return mean if dim is None else mean.unsqueeze(dim)"
            ),
            "The dimension disappears, as in torch's own `mean`.",
        ),
        Mistake(
            "a sum over real tokens, divided by the number of rows",
            _edit("the average", "count.clamp(min=1)", "len(x)"),
            "That is a mean over completions of their sums; asked is a mean over tokens.",
        ),
        Mistake(
            "a mean that takes a bool mask only",
            _edit("the kind of mask", "(x * real)", "x.masked_fill(~mask, 0)"),
            "`~` works on bool masks; masks may be float as well: `mask.bool()` first.",
            telling=2,
        ),
        Mistake(
            "a sum divided by the count plus 1",
            _edit("no real token", "count.clamp(min=1)", "(count + 1)"),
            "Adding 1 avoids the division by 0, but changes every other mean: use clamp.",
        ),
    ),
    alternatives=(_mean_by_where, _mean_by_loop, _mean_by_weights, line_by_line),
    hints=(
        "A mean is a sum divided by a count. Which of the two does padding spoil?",
        "Set padding to 0 and sum; sum the mask to count; the count must be at least 1.",
        "`sum(dim=None)` sums over everything:\n\n"
        "    total = (x * mask).sum(dim=dim)\n"
        "    count = mask.sum(dim=dim)\n"
        "    return total / count.clamp(...)",
    ),
)
