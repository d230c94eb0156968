"""Mean 0 and variance 1 over real tokens."""

from collections.abc import Iterator

import torch
from torch import Tensor

from rlcourse.algorithms.policies import masked_mean
from rlcourse.algorithms.ppo import whiten
from rlcourse.checks.calling import Case
from rlcourse.checks.cases import CaseSampler, tensor
from rlcourse.checks.exercise import Exercise, Mistake

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
    far = 1000 + draw.normal(*mask.shape)
    yield case("far from 0, float32", mask, x=far, dtype=torch.float32)
    alike = {"x": torch.full(mask.shape, 2.0).double(), "mask": mask}
    yield Case("all alike", alike, atol=ANY_EPSILON)
    yield case("small", mask, x=0.1 * draw.normal(*mask.shape))
    yield case("around 0", mask, x=draw.normal(*mask.shape))
    yield case("large", mask, x=300 * draw.normal(*mask.shape) - 500)
    rows = 5 * draw.normal(len(mask), 1) + draw.normal(*mask.shape)
    yield case("rows far from one another", mask, x=rows)


def _whitening(
    mean=masked_mean, scale=lambda var: (var + 1e-8).sqrt(), variance=masked_mean,
    clean=lambda x, mask: x.masked_fill(~mask.bool(), 0), shift=True,
):  # fmt: skip
    """`whiten` with one of its parts replaced."""

    def whitened(x, mask):
        centered = x - mean(x, mask)
        spread = variance(centered.square(), mask)
        return clean((centered if shift else x) / scale(spread), mask)

    return whitened


def _cancelling(x, mask):
    mean = masked_mean(x, mask)
    variance = masked_mean(x.square(), mask) - mean.square()
    return ((x - mean) / (variance.clamp(min=0) + 1e-8).sqrt()).masked_fill(~mask.bool(), 0)


def _everywhere(x, mask):
    return x.mean()


def _over_all_positions(x, mask):
    return (x * mask).mean()


def _of_each_row(x, mask):
    return masked_mean(x, mask, dim=1)[:, None]


def _of_each_column(x, mask):
    return masked_mean(x, mask, dim=0)


def _unbiased(squares, mask):
    count = mask.sum()
    return (squares * mask).sum() / (count - 1).clamp(min=1)


def _by_torch_std(x, mask):
    return (x - x.mean()) / (x.std() + 1e-8) * mask


def _root_mean_square(x, mask):
    square = masked_mean(x.square(), mask)
    return ((x - masked_mean(x, mask)) * (square + 1e-8).rsqrt()).masked_fill(~mask.bool(), 0)


def _keeps_mean(x, mask):
    return _whitening()(x, mask) + masked_mean(x, mask) * mask


def _to_unit_range(x, mask):
    real = x[mask.bool()]
    if not len(real):
        return torch.zeros_like(x)
    width = (real.max() - real.min()).clamp(min=1e-8)
    return ((x - real.min()) / width).masked_fill(~mask.bool(), 0)


def _length_one(x, mask):
    centered = (x - masked_mean(x, mask)).masked_fill(~mask.bool(), 0)
    return centered / (centered.norm() + 1e-8)


def _in_place(x, mask):
    x -= masked_mean(x, mask)
    variance = masked_mean(x.square(), mask)
    return (x * (variance + 1e-8).rsqrt()).masked_fill(~mask.bool(), 0)


def _flattened(x, mask):
    return whiten(x, mask)[mask.bool()]


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
            _whitening(mean=_everywhere, variance=_everywhere),
            "Padding holds no advantage: both moments run over real tokens only.",
        ),
        Mistake(
            "the mean and the sample deviation of everything, as `mean()` and `std()` give them",
            _by_torch_std,
            "`x.mean()` and `x.std()` know no mask: both moments run over real tokens only.",
        ),
        Mistake(
            "moments divided by the number of positions, padding included",
            _whitening(mean=_over_all_positions, variance=_over_all_positions),
            "Divide by how many tokens are real.",
        ),
        Mistake(
            "a division by the root mean square of x itself",
            _root_mean_square,
            "The variance is the mean square of the *centered* values.",
        ),
        Mistake(
            "a right mean, and a variance in which padding takes part",
            _whitening(variance=_everywhere),
            "The squares on padding count as well here: average them over real tokens only.",
        ),
        Mistake(
            "the sample variance, with n − 1",
            _whitening(variance=_unbiased),
            "Here the variance *of these tokens* is to be 1, so divide by n.",
        ),
        Mistake(
            "a whitening of each row by itself",
            _whitening(mean=_of_each_row, variance=_of_each_row),
            "One mean and one variance for the whole batch: otherwise a good and a bad completion "
            "come out alike.",
        ),
        Mistake(
            "a whitening of each column by itself",
            _whitening(mean=_of_each_column, variance=_of_each_column),
            "One mean and one variance for the whole batch, over all its real tokens.",
        ),
        Mistake(
            "values that are centered but not scaled",
            _whitening(scale=lambda var: torch.ones_like(var)),
            "The variance is to be 1: divide by the standard deviation.",
        ),
        Mistake(
            "values that are scaled but not centered",
            _whitening(shift=False),
            "The mean is to be 0: subtract it first.",
        ),
        Mistake(
            "values that are scaled, and whose mean was put back",
            _keeps_mean,
            "For rewards that is an option of some libraries; here the mean is to be 0.",
        ),
        Mistake(
            "a division by the variance",
            _whitening(scale=lambda var: var + 1e-8),
            "Divide by its square root: twice the spread must give the same result.",
        ),
        Mistake(
            "a division by the standard deviation or 1, whichever is larger",
            _whitening(scale=lambda var: var.sqrt().clamp(min=1)),
            "Small values are to be scaled up as well: guard the division with a tiny number only.",
            telling=2,
        ),
        Mistake(
            "a multiplication by the standard deviation",
            _whitening(scale=lambda var: (var + 1e-8).rsqrt()),
            "Divide by the standard deviation; `rsqrt` is 1/√ already.",
        ),
        Mistake(
            "0/0 where all values are alike",
            _whitening(scale=lambda var: var.sqrt()),
            "With no spread the result is 0: add a tiny number to the variance before the root.",
            telling=2,
        ),
        Mistake(
            "the mean of squares minus the square of the mean, which cancels",
            _cancelling,
            "Far from 0 both are large and float32 keeps seven digits of them: center first, then "
            "average the squares.",
            telling=1,
        ),
        Mistake(
            "a division by a deviation that is rounding and 1e-8, where all values are alike",
            _whitening(scale=lambda var: var.sqrt() + 1e-8),
            "In float32 the mean of seven times 0.1 is not quite 0.1, and what is left, over a "
            "deviation of the same size, is not small: add 1e-8 to the variance, under the root.",
            telling=1,
        ),
        Mistake(
            "a result that is not 0 on padding",
            _whitening(clean=lambda x, mask: x),
            "Centering moves the padding as well: set it to 0 at the end.",
        ),
        Mistake(
            "values that are squeezed into 0 … 1",
            _to_unit_range,
            "Whitening fixes mean and variance, not the extremes.",
        ),
        Mistake(
            "a result of length 1",
            _length_one,
            "The *mean* of the squares is to be 1, not their sum.",
        ),
        Mistake(
            "a whitening in place",
            _in_place,
            "`x -= …` changes the caller's tensor: make a new one.",
        ),
        Mistake(
            "the real tokens in one long row",
            _flattened,
            "The result has the shape of x, with 0 on padding.",
        ),
    ),
    alternatives=(_by_selection, _by_moments, _by_loop),
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
