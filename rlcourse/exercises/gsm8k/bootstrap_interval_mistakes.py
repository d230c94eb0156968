"""What goes wrong when the bootstrap of a mean is written."""

from functools import partial
from statistics import NormalDist

import torch
from torch import Tensor

from rlcourse.checks.exercise import Mistake
from rlcourse.checks.sketch import Sketch


def standard_error(correct: Tensor) -> float:
    return correct.double().std(correction=0).item() / len(correct) ** 0.5


def step_by_step(correct, level=0.95, resamples=2000, seed=0):
    n, scores = len(correct), correct.double()
    if n == 0:
        raise ValueError("no scores")
    generator = torch.Generator().manual_seed(seed)
    draws = torch.randint(n, (resamples, n), generator=generator)
    means = scores[draws].mean(dim=1)
    tails = torch.tensor([(1 - level) / 2, (1 + level) / 2], dtype=torch.float64)
    low, high = means.quantile(tails).tolist()
    return low, high


def around(center: Tensor, half: Tensor | float) -> tuple[float, float]:
    return (center - half).item(), (center + half).item()


def z(level: float) -> float:
    return NormalDist().inv_cdf((1 + level) / 2)


_edit = Sketch(step_by_step, around, z).alone
_drawing = partial(_edit, "torch.randint(n, (resamples, n), generator=generator)")
_shape = partial(_edit, "(resamples, n)")
_tails = partial(_edit, "(1 - level) / 2, (1 + level) / 2")
_interval = partial(_edit, "means.quantile(tails).tolist()")
_returned = partial(_edit, "return low, high")
MISTAKES = (
    # Before those that ignore the seed: only of two calls are their numbers told apart.
    Mistake(
        "draws after `torch.manual_seed`",
        _edit("torch.Generator().manual_seed(seed)", "torch.manual_seed(seed)"),
        "That seeds the generator of everybody: whoever draws next gets the same numbers each "
        "time. Make a generator of your own and hand it to `randint`.",
    ),
    Mistake(
        "resampling without replacement",
        _drawing("torch.rand(resamples, n, generator=generator).argsort(dim=1)"),
        "All n scores in another order have the same mean: a score must be able to come twice, "
        "and another not at all.",
    ),
    Mistake(
        "half of the scores, drawn without replacement",
        _drawing("torch.rand(resamples, n, generator=generator).argsort(dim=1)[:, : (n + 1) // 2]"),
        "The question is how the mean of *n* problems varies: n draws, with replacement.",
    ),
    Mistake(
        "the middle of the scores, not of their means",
        _interval("scores.quantile(tails).tolist()"),
        "That says how single problems differ. The mean of n of them varies √n times less.",
    ),
    Mistake(
        "mean ± z standard deviations of the scores",
        _interval("around(scores.mean(), z(level) * scores.std(correction=0))"),
        "That says how single problems differ. The mean of n of them varies √n times less.",
    ),
    Mistake(
        "the normal approximation, mean ± z standard errors",
        _interval("around(scores.mean(), z(level) * standard_error(correct))"),
        "It is symmetric, and near 0 or 1 the truth is not: with 1 right of 30 it begins below "
        "0. Take the percentiles of the resampled means.",
    ),
    Mistake(
        "mean ± 1.96 standard errors, whatever the level",
        _interval("around(scores.mean(), 1.96 * scores.std(correction=min(1, n - 1)) / n**0.5)"),
        "1.96 belongs to a level of 0.95 and to a bell curve: take the percentiles of the "
        "resampled means that `level` asks for.",
    ),
    Mistake(
        "the percentiles mirrored at the mean",
        _returned("twice = 2 * scores.mean().item()\n    return twice - high, twice - low"),
        "The “basic” bootstrap, 2·mean − percentile, is another interval, and it may leave "
        "[0, 1]: take the percentiles as they are.",
    ),
    Mistake(
        "one standard deviation of the resampled means to each side",
        _interval("around(means.mean(), means.std(correction=0))"),
        "That holds about two thirds of them, whatever `level` says: take percentiles.",
    ),
    Mistake(
        "1 − level cut off on each side",
        _tails("1 - level, level"),
        "Two tails share what is left out: (1 − level)/2 below and as much above.",
    ),
    Mistake(
        "a bound from below and none above",
        _interval("means.quantile(1 - level).item(), 1.0"),
        "An interval has two ends, each cutting off (1 − level)/2.",
    ),
    Mistake(
        "all of the tail cut off above",
        _tails("0, level"),
        "The quantiles 0 and `level` hold the lowest means; the *middle* ones are wanted.",
    ),
    Mistake(
        "95 %, whatever the level",
        _tails("0.025, 0.975"),
        "The tails depend on `level`: (1 − level)/2 each.",
    ),
    Mistake(
        "percent where shares are wanted",
        _edit("dtype=torch.float64)", "dtype=torch.float64) / 100"),
        "`quantile` counts from 0 to 1, `numpy.percentile` from 0 to 100: with the wrong one "
        "both ends lie in the lower tail.",
    ),
    Mistake(
        "the smallest and the largest resampled mean",
        _tails("0, 1"),
        "Extremes grow with the number of resamples; percentiles settle.",
    ),
    Mistake(
        "2000 resamples, whatever `resamples` says",
        _shape("(2000, n)"),
        "The number of resamples is an argument.",
        telling=1,
    ),
    Mistake(
        "as many resamples as there are scores",
        _shape("(n, n)"),
        "Each resample has n scores, but how many resamples there are is another number: few "
        "of them have no tails.",
    ),
    Mistake(
        "n resamples of `resamples` scores each",
        _shape("(n, resamples)"),
        "Rows and columns are exchanged: such long resamples all have nearly the same mean.",
    ),
    Mistake(
        "resamples half as long",
        _shape("(resamples, (n + 1) // 2)"),
        "The mean of fewer scores varies more: each resample must have n scores, as the "
        "evaluation has.",
    ),
    Mistake(
        "resamples twice as long",
        _shape("(resamples, 2 * n)"),
        "The mean of more scores varies less: each resample must have n scores, as the "
        "evaluation has.",
    ),
    Mistake(
        "sums in place of means",
        _edit("mean(dim=1)", "sum(dim=1)"),
        "Divide by n, the number of scores in a resample.",
    ),
    Mistake(
        "medians of the resamples",
        _edit("mean(dim=1)", "median(dim=1).values"),
        "Accuracy is a mean; the median of zeros and ones is 0 or 1.",
    ),
    Mistake(
        "coin flips at the mean rate",
        _drawing(
            "torch.bernoulli(scores.mean().clamp(0, 1).expand(resamples, n), generator=generator)",
            "scores[draws]",
            "draws",
        ),
        "For scores of 0 and 1 that is the same, but a score may be a share, as the mean of a "
        "problem's samples is, and varies less: draw from the scores.",
    ),
    Mistake(
        "an interval around 0",
        _returned("return low - scores.mean().item(), high - scores.mean().item()"),
        "The ends are possible values of the mean, not distances from it.",
    ),
    Mistake(
        "the mean and half of the interval's length",
        _returned("return scores.mean().item(), (high - low) / 2"),
        "The interval need not be symmetric: return its two ends.",
    ),
    Mistake("the high end first", _returned("return high, low"), "Return (low, high)."),
    Mistake(
        "draws that ignore the seed",
        _edit(", generator=generator", ""),
        "The same call must give the same interval: draw with a generator that is seeded with "
        "`seed`.",
    ),
    Mistake(
        "a result where ValueError is asked for",
        _edit('raise ValueError("no scores")', "return torch.nan, torch.nan"),
        "The mean of no scores is not a number, and NaN spreads: raise ValueError.",
        telling=1,
    ),
)
