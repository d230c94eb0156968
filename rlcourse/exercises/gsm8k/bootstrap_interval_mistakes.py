"""What goes wrong when the bootstrap of a mean is written."""

from dataclasses import replace
from statistics import NormalDist

import torch
from torch import Tensor

from rlcourse.algorithms.evaluation import bootstrap_interval
from rlcourse.checks.exercise import Mistake


def standard_error(correct: Tensor) -> float:
    return correct.double().std(correction=0).item() / len(correct) ** 0.5


def _draws(n: int, resamples: int, seed: int, size: int | None = None) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(n, (resamples, size or n), generator=generator)


def _means(correct, resamples, seed, size=None) -> Tensor:
    return correct.double()[_draws(len(correct), resamples, seed, size)].mean(dim=1)


def _middle(values: Tensor, level: float) -> tuple[float, float]:
    tails = torch.tensor([(1 - level) / 2, (1 + level) / 2], dtype=torch.float64)
    return tuple(values.quantile(tails).tolist())


def _around(center: float, half: float) -> tuple[float, float]:
    return center - half, center + half


def _z(level: float) -> float:
    return NormalDist().inv_cdf((1 + level) / 2)


def _without_replacement(correct, level=0.95, resamples=2000, seed=0):
    generator = torch.Generator().manual_seed(seed)
    shuffled = torch.rand(resamples, len(correct), generator=generator).argsort(dim=1)
    return _middle(correct.double()[shuffled].mean(dim=1), level)


def _half_without_replacement(correct, level=0.95, resamples=2000, seed=0):
    generator = torch.Generator().manual_seed(seed)
    order = torch.rand(resamples, len(correct), generator=generator).argsort(dim=1)
    return _middle(correct.double()[order[:, : (len(correct) + 1) // 2]].mean(dim=1), level)


def _of_the_scores(correct, level=0.95, resamples=2000, seed=0):
    return _middle(correct.double(), level)


def _spread_of_scores(correct, level=0.95, resamples=2000, seed=0):
    half = _z(level) * correct.double().std(correction=0).item()
    return _around(correct.double().mean().item(), half)


def _normal(correct, level=0.95, resamples=2000, seed=0):
    return _around(correct.double().mean().item(), _z(level) * standard_error(correct))


def _always_196(correct, level=0.95, resamples=2000, seed=0):
    deviation = correct.double().std(correction=min(1, len(correct) - 1)).item()
    return _around(correct.double().mean().item(), 1.96 * deviation / len(correct) ** 0.5)


def _basic(correct, level=0.95, resamples=2000, seed=0):
    low, high = bootstrap_interval(correct, level, resamples, seed)
    twice = 2 * correct.double().mean().item()
    return twice - high, twice - low


def _one_deviation(correct, level=0.95, resamples=2000, seed=0):
    means = _means(correct, resamples, seed)
    return _around(means.mean().item(), means.std(correction=0).item())


def _whole_level_each_side(correct, level=0.95, resamples=2000, seed=0):
    tails = torch.tensor([1 - level, level], dtype=torch.float64)
    return tuple(_means(correct, resamples, seed).quantile(tails).tolist())


def _open_above(correct, level=0.95, resamples=2000, seed=0):
    return _means(correct, resamples, seed).quantile(1 - level).item(), 1.0


def _from_zero_to_level(correct, level=0.95, resamples=2000, seed=0):
    means = _means(correct, resamples, seed)
    return means.min().item(), means.quantile(level).item()


def _always_95(correct, level=0.95, resamples=2000, seed=0):
    return bootstrap_interval(correct, 0.95, resamples, seed)


def _percent_for_shares(correct, level=0.95, resamples=2000, seed=0):
    tails = torch.tensor([(1 - level) / 2, (1 + level) / 2], dtype=torch.float64) / 100
    return tuple(_means(correct, resamples, seed).quantile(tails).tolist())


def _extremes(correct, level=0.95, resamples=2000, seed=0):
    means = _means(correct, resamples, seed)
    return means.min().item(), means.max().item()


def _always_2000(correct, level=0.95, resamples=2000, seed=0):
    return bootstrap_interval(correct, level, 2000, seed)


def _as_many_as_scores(correct, level=0.95, resamples=2000, seed=0):
    return bootstrap_interval(correct, level, len(correct), seed)


def _transposed(correct, level=0.95, resamples=2000, seed=0):
    return _middle(_means(correct, len(correct), seed, size=resamples), level)


def _half_as_long(correct, level=0.95, resamples=2000, seed=0):
    return _middle(_means(correct, resamples, seed, size=(len(correct) + 1) // 2), level)


def _twice_as_long(correct, level=0.95, resamples=2000, seed=0):
    return _middle(_means(correct, resamples, seed, size=2 * len(correct)), level)


def _sums(correct, level=0.95, resamples=2000, seed=0):
    low, high = bootstrap_interval(correct, level, resamples, seed)
    return low * len(correct), high * len(correct)


def _medians(correct, level=0.95, resamples=2000, seed=0):
    drawn = correct.double()[_draws(len(correct), resamples, seed)]
    return _middle(drawn.median(dim=1).values, level)


def _coin_flips(correct, level=0.95, resamples=2000, seed=0):
    generator = torch.Generator().manual_seed(seed)
    rate = correct.double().mean().clamp(0, 1).expand(resamples, len(correct))
    return _middle(torch.bernoulli(rate, generator=generator).mean(dim=1), level)


def _centered(correct, level=0.95, resamples=2000, seed=0):
    low, high = bootstrap_interval(correct, level, resamples, seed)
    mean = correct.double().mean().item()
    return low - mean, high - mean


def _mean_and_half(correct, level=0.95, resamples=2000, seed=0):
    low, high = bootstrap_interval(correct, level, resamples, seed)
    return correct.double().mean().item(), (high - low) / 2


def _high_first(correct, level=0.95, resamples=2000, seed=0):
    return bootstrap_interval(correct, level, resamples, seed)[::-1]


def _no_seed(correct, level=0.95, resamples=2000, seed=0):
    draws = torch.randint(len(correct), (resamples, len(correct)))
    return _middle(correct.double()[draws].mean(dim=1), level)


def _reseeding(correct, level=0.95, resamples=2000, seed=0):
    torch.manual_seed(seed)
    draws = torch.randint(len(correct), (resamples, len(correct)))
    return _middle(correct.double()[draws].mean(dim=1), level)


def _of_nothing(correct, level=0.95, resamples=2000, seed=0):
    if not len(correct):
        return torch.nan, torch.nan
    return bootstrap_interval(correct, level, resamples, seed)


def _guarded(*mistakes: Mistake) -> tuple[Mistake, ...]:
    """With the ValueError, so that each is only the mistake that it is meant to be."""
    return tuple(replace(m, implementation=_with_guard(m.implementation)) for m in mistakes)


def _with_guard(implementation):
    def checked(correct, level=0.95, resamples=2000, seed=0):
        if not len(correct):
            raise ValueError("no scores")
        return implementation(correct, level, resamples, seed)

    return checked


MISTAKES = (
    *_guarded(
        # Before those that ignore the seed: only of two calls are their numbers told apart.
        Mistake(
            "draws after `torch.manual_seed`",
            _reseeding,
            "That seeds the generator of everybody: whoever draws next gets the same numbers each "
            "time. Make a generator of your own and hand it to `randint`.",
        ),
        Mistake(
            "resampling without replacement",
            _without_replacement,
            "All n scores in another order have the same mean: a score must be able to come twice, "
            "and another not at all.",
        ),
        Mistake(
            "half of the scores, drawn without replacement",
            _half_without_replacement,
            "The question is how the mean of *n* problems varies: n draws, with replacement.",
        ),
        Mistake(
            "the middle of the scores, not of their means",
            _of_the_scores,
            "That says how single problems differ. The mean of n of them varies √n times less.",
        ),
        Mistake(
            "mean ± z standard deviations of the scores",
            _spread_of_scores,
            "That says how single problems differ. The mean of n of them varies √n times less.",
        ),
        Mistake(
            "the normal approximation, mean ± z standard errors",
            _normal,
            "It is symmetric, and near 0 or 1 the truth is not: with 1 right of 30 it begins below "
            "0. Take the percentiles of the resampled means.",
        ),
        Mistake(
            "mean ± 1.96 standard errors, whatever the level",
            _always_196,
            "1.96 belongs to a level of 0.95 and to a bell curve: take the percentiles of the "
            "resampled means that `level` asks for.",
        ),
        Mistake(
            "the percentiles mirrored at the mean",
            _basic,
            "The “basic” bootstrap, 2·mean − percentile, is another interval, and it may leave "
            "[0, 1]: take the percentiles as they are.",
        ),
        Mistake(
            "one standard deviation of the resampled means to each side",
            _one_deviation,
            "That holds about two thirds of them, whatever `level` says: take percentiles.",
        ),
        Mistake(
            "1 − level cut off on each side",
            _whole_level_each_side,
            "Two tails share what is left out: (1 − level)/2 below and as much above.",
        ),
        Mistake(
            "a bound from below and none above",
            _open_above,
            "An interval has two ends, each cutting off (1 − level)/2.",
        ),
        Mistake(
            "all of the tail cut off above",
            _from_zero_to_level,
            "The quantiles 0 and `level` hold the lowest means; the *middle* ones are wanted.",
        ),
        Mistake(
            "95 %, whatever the level",
            _always_95,
            "The tails depend on `level`: (1 − level)/2 each.",
        ),
        Mistake(
            "percent where shares are wanted",
            _percent_for_shares,
            "`quantile` counts from 0 to 1, `numpy.percentile` from 0 to 100: with the wrong one "
            "both ends lie in the lower tail.",
        ),
        Mistake(
            "the smallest and the largest resampled mean",
            _extremes,
            "Extremes grow with the number of resamples; percentiles settle.",
        ),
        Mistake(
            "2000 resamples, whatever `resamples` says",
            _always_2000,
            "The number of resamples is an argument.",
            telling=1,
        ),
        Mistake(
            "as many resamples as there are scores",
            _as_many_as_scores,
            "Each resample has n scores, but how many resamples there are is another number: few "
            "of them have no tails.",
        ),
        Mistake(
            "n resamples of `resamples` scores each",
            _transposed,
            "Rows and columns are exchanged: such long resamples all have nearly the same mean.",
        ),
        Mistake(
            "resamples half as long",
            _half_as_long,
            "The mean of fewer scores varies more: each resample must have n scores, as the "
            "evaluation has.",
        ),
        Mistake(
            "resamples twice as long",
            _twice_as_long,
            "The mean of more scores varies less: each resample must have n scores, as the "
            "evaluation has.",
        ),
        Mistake(
            "sums in place of means",
            _sums,
            "Divide by n, the number of scores in a resample.",
        ),
        Mistake(
            "medians of the resamples",
            _medians,
            "Accuracy is a mean; the median of zeros and ones is 0 or 1.",
        ),
        Mistake(
            "coin flips at the mean rate",
            _coin_flips,
            "For scores of 0 and 1 that is the same, but a score may be a share, as the mean of a "
            "problem's samples is, and varies less: draw from the scores.",
        ),
        Mistake(
            "an interval around 0",
            _centered,
            "The ends are possible values of the mean, not distances from it.",
        ),
        Mistake(
            "the mean and half of the interval's length",
            _mean_and_half,
            "The interval need not be symmetric: return its two ends.",
        ),
        Mistake("the high end first", _high_first, "Return (low, high)."),
        Mistake(
            "draws that ignore the seed",
            _no_seed,
            "The same call must give the same interval: draw with a generator that is seeded with "
            "`seed`.",
        ),
    ),
    Mistake(
        "a result where ValueError is asked for",
        _of_nothing,
        "The mean of no scores is not a number, and NaN spreads: raise ValueError.",
        telling=1,
    ),
)
