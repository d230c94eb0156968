"""Mean 0 and variance 1 over real tokens."""

from collections.abc import Iterator
from functools import partial

import torch
from torch import Tensor

from rlcourse.algorithms.policies import masked_mean
from rlcourse.algorithms.ppo import whiten
from rlcourse.checks.calling import Case
from rlcourse.checks.cases import CaseSampler, tensor
from rlcourse.checks.exercise import Exercise, Mistake
from rlcourse.checks.sketch import Sketch

# Up to 1e-5, beside the deviation or under the root, is as good as the reference's 1e-8.
ANY_EPSILON = 2e-3


def _cases(draw: CaseSampler) -> Iterator[Case]:
    def case(label: str, mask: Tensor, dtype=torch.float64, x=None) -> Case:
        x = 3 + draw.normal(*mask.shape, scale=2.0) if x is None else x
        return Case(label, {"x": x.to(dtype), "mask": mask}, atol=ANY_EPSILON)

    worked = tensor([[1.0, 3.0], [5.0, 100.0]])
    yield case("worked: three tokens and padding", torch.tensor([[1, 1], [1, 0]]) > 0, x=worked)
    for label, logprobs, mask in draw.batches():
        yield case(label, mask, dtype=logprobs.dtype)
    mask = draw.mask(draw.size(3, 4), draw.size(5, 6))
    tenths = torch.full((1, 7), 0.1)
    yield case("seven times 0.1, float32", tenths > 0, x=tenths, dtype=torch.float32)
    far = 3000 + draw.normal(*mask.shape, scale=3.0)
    yield case("far from 0, float32", mask, x=far, dtype=torch.float32)
    alike = {"x": torch.full(mask.shape, 2.0).double(), "mask": mask}
    yield Case("all alike", alike, atol=ANY_EPSILON)
    yield case("small", mask, x=0.1 * draw.normal(*mask.shape))
    yield case("around 0", mask, x=draw.normal(*mask.shape))
    yield case("large", mask, x=300 * draw.normal(*mask.shape) - 500)
    rows = 5 * draw.normal(len(mask), 1) + draw.normal(*mask.shape)
    yield case("rows far from one another", mask, x=rows)


def _to_unit_range(x, mask):
    real = x[mask.bool()]
    if not len(real):
        return torch.zeros_like(x)
    width = (real.max() - real.min()).clamp(min=1e-8)
    return ((x - real.min()) / width).masked_fill(~mask.bool(), 0)


def _in_place(x, mask):
    x -= masked_mean(x, mask)
    variance = masked_mean(x.square(), mask)
    return (x * (variance + 1e-8).rsqrt()).masked_fill(~mask.bool(), 0)


def _by_selection(x, mask):
    real, out = x[mask.bool()], torch.zeros_like(x)
    if len(real):
        out[mask.bool()] = (real - real.mean()) / (real.var(correction=0) + 1e-8).sqrt()
    return out


def _by_moments(x, mask):
    """Var = E[x²] − E[x]², in float64, where the difference is harmless."""
    w = mask.double() / mask.double().sum().clamp(min=1)
    y = x.double()
    mean = (w * y).sum()
    std = ((w * y * y).sum() - mean**2).clamp(min=0).sqrt()
    return torch.where(mask.bool(), (y - mean) / (std + 1e-8), 0.0).to(x.dtype)


def _by_loop(x, mask):
    kept = [float(v) for v, m in zip(x.flatten(), mask.flatten(), strict=True) if m]
    n = max(len(kept), 1)
    mean = sum(kept) / n
    std = (sum((v - mean) ** 2 for v in kept) / n + 1e-8) ** 0.5
    return torch.where(mask.bool(), (x - mean) / std, torch.zeros_like(x))


def line_by_line(x, mask):
    mean = masked_mean(x, mask)
    centered = x - mean
    variance = masked_mean(centered.square(), mask)
    result = centered / (variance + 1e-8).sqrt()
    return result.masked_fill(~mask.bool(), 0)


_edit = Sketch(line_by_line).edit
_MEAN, _VARIANCE = "masked_mean(x, mask)", "masked_mean(centered.square(), mask)"
_ROOT = "(variance + 1e-8).sqrt()"
_variance = partial(_edit, "the variance", _VARIANCE)


EXERCISE = Exercise(
    reference=whiten,
    lesson="05_ppo",
    section="Whitening",
    points=2,
    difficulty=2,
    minutes=5,
    cases=_cases,
    mistakes=(
        Mistake(
            "a mean and a variance in which padding takes part",
            _edit("the moments", _MEAN, "x.mean()", _VARIANCE, "centered.square().mean()"),
            "Padding holds no advantage: both moments run over real tokens only.",
        ),
        Mistake(
            "the mean and the sample deviation of everything, as `mean()` and `std()` give them",
            _edit("the moments", _MEAN, "x.mean()", _ROOT, "(x.std() + 1e-8)"),
            "`x.mean()` and `x.std()` know no mask: both moments run over real tokens only.",
        ),
        Mistake(
            "moments divided by the number of positions, padding included",
            _edit(
                "the moments",
                _MEAN,
                "(x * mask).mean()",
                _VARIANCE,
                "(centered.square() * mask).mean()",
            ),
            "Divide by how many tokens are real.",
        ),
        Mistake(
            "a division by the root mean square of x itself",
            _edit("the variance", "centered.square()", "x.square()"),
            "The variance is the mean square of the *centered* values.",
        ),
        Mistake(
            "a right mean, and a variance in which padding takes part",
            _variance("centered.square().mean()"),
            "The squares on padding count as well here: average them over real tokens only.",
        ),
        Mistake(
            "the sample variance, with n − 1",
            _variance("(centered.square() * mask).sum() / (mask.sum() - 1).clamp(min=1)"),
            "Here the variance *of these tokens* is to be 1, so divide by n.",
        ),
        Mistake(
            "a whitening of each row by itself",
            _edit(
                "the moments",
                _MEAN,
                "masked_mean(x, mask, dim=1)[:, None]",
                _VARIANCE,
                "masked_mean(centered.square(), mask, dim=1)[:, None]",
            ),
            "One mean and one variance for the whole batch: otherwise a good and a bad completion "
            "come out alike.",
        ),
        Mistake(
            "a whitening of each column by itself",
            _edit(
                "the moments",
                _MEAN,
                "masked_mean(x, mask, dim=0)",
                _VARIANCE,
                "masked_mean(centered.square(), mask, dim=0)",
            ),
            "One mean and one variance for the whole batch, over all its real tokens.",
        ),
        Mistake(
            "values that are centered but not scaled",
            _edit("the scale", _ROOT, "1"),
            "The variance is to be 1: divide by the standard deviation.",
        ),
        Mistake(
            "values that are scaled but not centered",
            _edit("the centering", "centered / (", "x / ("),
            "The mean is to be 0: subtract it first.",
        ),
        Mistake(
            "values that are scaled, and whose mean was put back",
            _edit("the centering", "result.masked", "(result + mean).masked"),
            "For rewards that is an option of some libraries; here the mean is to be 0.",
        ),
        Mistake(
            "a division by the variance",
            _edit("the scale", ".sqrt()", ""),
            "Divide by its square root: twice the spread must give the same result.",
        ),
        Mistake(
            "a division by the standard deviation or 1, whichever is larger",
            _edit("the scale", _ROOT, "variance.sqrt().clamp(min=1)"),
            "Small values are to be scaled up as well: guard the division with a tiny number only.",
            telling=2,
        ),
        Mistake(
            "a multiplication by the standard deviation",
            _edit("the scale", ".sqrt()", ".rsqrt()"),
            "Divide by the standard deviation; `rsqrt` is 1/√ already.",
        ),
        Mistake(
            "0/0 where all values are alike",
            _edit("values that are alike", _ROOT, "variance.sqrt()"),
            "With no spread the result is 0: add a tiny number to the variance before the root.",
            telling=2,
        ),
        Mistake(
            "the mean of squares minus the square of the mean, which cancels",
            _variance("(masked_mean(x.square(), mask) - mean.square()).clamp(min=0)"),
            "Far from 0 both are large and float32 keeps seven digits of them: center first, then "
            "average the squares.",
            telling=1,
        ),
        Mistake(
            "a division by a deviation that is rounding and 1e-8, where all values are alike",
            _edit("values that are alike", _ROOT, "(variance.sqrt() + 1e-8)"),
            "In float32 the mean of seven times 0.1 is not quite 0.1, and what is left, over a "
            "deviation of the same size, is not small: add 1e-8 to the variance, under the root.",
            telling=1,
        ),
        Mistake(
            "a result that is not 0 on padding",
            _edit("the padding", ".masked_fill(~mask.bool(), 0)", ""),
            "Centering moves the padding as well: set it to 0 at the end.",
        ),
        Mistake(
            "values that are squeezed into 0 … 1",
            _to_unit_range,
            "Whitening fixes mean and variance, not the extremes.",
        ),
        Mistake(
            "a result of length 1",
            _edit("the scale", _ROOT, "((centered * mask).norm() + 1e-8)"),
            "The *mean* of the squares is to be 1, not their sum.",
        ),
        Mistake(
            "a whitening in place",
            _in_place,
            "`x -= …` changes the caller's tensor: make a new one.",
        ),
        Mistake(
            "the real tokens in one long row",
            _edit("the shape", ".masked_fill(~mask.bool(), 0)", "[mask.bool()]"),
            "The result has the shape of x, with 0 on padding.",
        ),
    ),
    alternatives=(_by_selection, _by_moments, _by_loop, line_by_line),
    hints=(
        "`masked_mean` gives the mean. The variance is a `masked_mean` as well: of what?",
        "Center first, then take the masked mean of the squares, divide by its root (with 1e-8 "
        "added under it), and set padding to 0.",
        "Four lines:\n\n"
        "    centered = x - masked_mean(x, mask)\n"
        "    variance = masked_mean(..., mask)\n"
        "    return (centered * (variance + 1e-8).rsqrt())...",
    ),
)
