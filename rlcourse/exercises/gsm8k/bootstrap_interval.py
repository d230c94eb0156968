"""How sure a mean is. Resampling is random, so intervals are compared within what chance allows.

The tolerance of a case is six standard errors of the difference between two honest bootstraps.
Scores of 0 and 1 have few possible means; the cases with them are chosen such that both quantiles
lie safely inside one of these, and every honest bootstrap finds the same two numbers.
"""

from collections.abc import Iterator
from statistics import NormalDist

import numpy as np
import torch
from torch import Tensor

from rlcourse.algorithms.evaluation import bootstrap_interval
from rlcourse.checks.calling import Case
from rlcourse.checks.cases import CaseSampler, tensor
from rlcourse.checks.exercise import Exercise, Mistake

RESAMPLES = 4000
LONG_RUN = 60_000


def chance(correct: Tensor, level: float = 0.95, resamples: int = 2000, **_) -> float:
    """Six standard errors of the difference between two bootstrap quantiles."""
    tail = (1 - level) / 2
    density = NormalDist().pdf(NormalDist().inv_cdf(tail))
    error = (tail * (1 - tail) / resamples) ** 0.5 / density
    return 6 * 2**0.5 * error * _standard_error(correct)


def observe(case: Case, ends: tuple[float, float]):
    """Low and high; of a single resample only that they are the same number."""
    if case.arguments.get("resamples") == 1:
        return {"both ends alike": ends[0] == ends[1]}
    return ends


def _cases(draw: CaseSampler) -> Iterator[Case]:
    def case(label: str, correct: Tensor, atol: float | None = None, **options) -> Case:
        arguments = {"correct": correct, **options, "seed": draw.integer(0, 10_000)}
        return Case(label, arguments, atol=chance(**arguments) if atol is None else atol)

    def coins(label: str, right: int, n: int, level: float) -> Case:
        where = torch.argsort(draw.uniform(n))
        correct = (where < right).double()
        return case(label, correct, atol=0.3 / n, level=level, resamples=RESAMPLES)

    worked = tensor([1.0, 0.0, 0.5, 1.0, 0.0, 0.25, 0.75, 0.0])
    yield Case("worked: eight problems", {"correct": worked}, atol=chance(worked))
    yield coins("2 of 16 right", 2, 16, 0.95)
    yield coins("14 of 16 right", 14, 16, 0.95)
    yield coins("1 of 30 right, level 0.9", 1, 30, 0.9)
    yield coins("3 of 10 right, level 0.8", 3, 10, 0.8)
    yield case("all right", torch.ones(draw.size(5, 9)).double(), atol=1e-9, resamples=100)
    many = {"resamples": RESAMPLES}
    yield case("shares of samples", draw.uniform(draw.size(18, 24)) ** 2, **many)
    yield case("level 0.5", draw.uniform(draw.size(18, 24)), level=0.5, **many)
    yield case("level 0.8", draw.uniform(draw.size(10, 14)) ** 2, level=0.8, **many)
    yield case("more problems", draw.uniform(draw.size(80, 100)), level=0.9, **many)
    yield case("float32", draw.uniform(draw.size(12, 16)).float(), level=0.8, **many)
    yield case("scores above 1 and below 0", 3 * draw.normal(12) + 1, level=0.9, **many)
    yield case("one resample", draw.uniform(draw.size(18, 24)), atol=1e-9, resamples=1)


def _standard_error(correct: Tensor) -> float:
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
    return _around(correct.double().mean().item(), _z(level) * _standard_error(correct))


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


def _with_numpy(correct, level=0.95, resamples=2000, seed=0):
    rng = np.random.default_rng(seed)
    drawn = rng.choice(correct.numpy(), size=(resamples, len(correct)), replace=True)
    low, high = np.quantile(drawn.mean(axis=1), [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)


def _one_after_another(correct, level=0.95, resamples=2000, seed=0):
    """A loop, its means sorted, and the two that cut off the tails."""
    torch.manual_seed(seed)
    means = sorted(
        correct[torch.randint(len(correct), (len(correct),))].mean().item()
        for _ in range(resamples)
    )
    cut = int((1 - level) / 2 * resamples)
    return means[cut], means[-1 - cut]


def _by_counts(correct, level=0.95, resamples=2000, seed=0):
    """How often each score is drawn, in place of the draws."""
    n = len(correct)
    counts = np.random.default_rng(seed).multinomial(n, np.full(n, 1 / n), size=resamples)
    means = torch.from_numpy(counts).double() @ correct.double() / n
    tail = (1 - level) / 2
    return means.quantile(tail).item(), means.quantile(1 - tail).item()


def _long_run(correct, level=0.95, resamples=2000, seed=0):
    return _by_counts(correct, level, 1 if resamples == 1 else LONG_RUN, seed + 1)


EXERCISE = Exercise(
    reference=bootstrap_interval,
    lesson="11_gsm8k",
    section="How sure is a score?",
    points=2,
    difficulty=3,
    minutes=10,
    cases=_cases,
    observe=observe,
    oracle=_long_run,
    mistakes=(
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
    alternatives=(_with_numpy, _one_after_another, _by_counts),
    hints=(
        "Pretend that your n scores are all problems there are, and draw an evaluation of n "
        "problems from them. Do so many times, and see how the mean varies.",
        "`torch.randint(n, (resamples, n), generator=…)` gives indices with replacement; "
        "`correct[indices]` is then a table whose rows are resamples. The ends of the interval are "
        "two quantiles of the row means.",
        "Everything but the tails:\n\n"
        "    generator = torch.Generator().manual_seed(seed)\n"
        "    n = len(correct)\n"
        "    draws = torch.randint(n, (resamples, n), generator=generator)\n"
        "    means = correct.double()[draws].mean(dim=1)\n"
        "    low = means.quantile(...).item()",
    ),
)
