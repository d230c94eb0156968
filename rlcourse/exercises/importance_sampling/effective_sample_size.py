"""How many samples a set of weighted samples is worth."""

from collections.abc import Iterator

import torch
from torch import Tensor

from rlcourse.algorithms.importance_sampling import effective_sample_size
from rlcourse.checks.calling import Case
from rlcourse.checks.cases import CaseSampler, tensor
from rlcourse.checks.exercise import Exercise, Mistake


def _cases(draw: CaseSampler) -> Iterator[Case]:
    def case(label: str, weights: Tensor) -> Case:
        return Case(label, {"weights": weights})

    yield case("worked: weights 1.4 and 1/3", tensor([1.4, 1 / 3]))
    n = draw.size(4, 7)
    yield case("equal weights: n", torch.full((n,), 0.7).double())
    alone = torch.zeros(n).double()
    alone[draw.integer(0, n - 1)] = 3.0
    yield case("one weight holds everything: 1", alone)
    yield case("weights around 1", draw.uniform(n, low=0.5, high=1.5))
    yield case("weights far apart", draw.normal(n, scale=2).exp())
    yield case("the same, 1000 times larger", 1000 * draw.normal(n).exp())
    yield case("tiny weights", 1e-6 * draw.uniform(n, low=0.5, high=1.5))
    yield case("some weights are 0", draw.uniform(n, low=0.5, high=1.5) * (torch.arange(n) % 2))
    yield case("one sample", draw.uniform(1, low=0.5, high=1.5))
    yield case("no weight at all: 0", torch.zeros(n).double())
    yield case("float32", draw.uniform(n, low=0.2, high=2.0).float())
    yield case("float32, huge weights", 1e25 * draw.uniform(n, low=0.2, high=2.0).float())


def _safe(numerator: Tensor, denominator: Tensor) -> Tensor:
    return torch.where(denominator == 0, torch.zeros_like(numerator), numerator / denominator)


def _wide(implementation):
    """Computed in float64, so that the mistake is only the one that it is meant to be."""
    return lambda weights: implementation(weights.double()).to(weights.dtype)


def _squares(weights):
    return weights.square().sum()


def _size_by_normalizing(weights):
    total = weights.double().sum()
    if total == 0:
        return torch.zeros_like(weights[0])
    return (1 / (weights.double() / total).square().sum()).to(weights.dtype)


def _size_by_variation(weights):
    """n / (1 + squared coefficient of variation)."""
    wide = weights.double()
    if not wide.any():
        return torch.zeros_like(weights[0])
    variation = wide.var(correction=0) / wide.mean() ** 2
    return (len(wide) / (1 + variation)).to(weights.dtype)


def _size_by_logs(weights):
    logs = weights.log()
    return (2 * logs.logsumexp(0) - (2 * logs).logsumexp(0)).exp().nan_to_num(0)


EXERCISE = Exercise(
    reference=effective_sample_size,
    lesson="04_importance_sampling",
    section="What weighted samples are worth",
    points=2,
    difficulty=1,
    minutes=5,
    cases=_cases,
    mistakes=(
        Mistake(
            "Σw² / (Σw)², the inverse",
            _wide(lambda w: _safe(_squares(w), w.sum().square())),
            "Equal weights must give n, not 1/n: the square of the sum stands above.",
        ),
        Mistake(
            "the share of n, not the number of samples",
            _wide(lambda w: _safe(w.sum().square(), _squares(w)) / len(w)),
            "The result is a number of samples, from 1 to n: do not divide by n.",
        ),
        Mistake(
            "the sum of the weights",
            lambda weights: weights.sum(),
            "A sum grows with the scale of the weights; what counts is how unequal they are.",
        ),
        Mistake(
            "Σw / Σw²",
            _wide(lambda w: _safe(w.sum(), _squares(w))),
            "The sum above is squared as well, or the result would depend on the scale of the "
            "weights.",
        ),
        Mistake(
            "the number of samples with any weight",
            lambda weights: (weights != 0).sum().to(weights.dtype),
            "A sample of weight 0.001 is hardly a sample: unequal weights must lower the size.",
        ),
        Mistake(
            "the sum over the largest weight",
            _wide(lambda w: _safe(w.sum(), w.max())),
            "That is another measure, Σw/max w; the variance of a weighted mean is governed by "
            "(Σw)²/Σw².",
        ),
        Mistake(
            "exp of the weights' entropy",
            _wide(lambda w: torch.special.entr(_safe(w, w.sum())).sum().exp() * bool(w.any())),
            "That is another measure, the perplexity of the weights; the variance of a weighted "
            "mean is governed by (Σw)²/Σw².",
        ),
        Mistake(
            "n times the mean of the squares over the square of the mean",
            _wide(lambda w: _safe(len(w) * w.square().mean(), w.mean().square())),
            "Unequal weights must make the size smaller than n; here they make it larger.",
        ),
        Mistake(
            "0/0 where all weights are 0",
            _wide(lambda w: w.sum().square() / _squares(w)),
            "Nothing weighs anything: the size is 0, and NaN would spread through the metrics.",
            telling=1,
        ),
        Mistake(
            "a denominator of at least 1",
            _wide(lambda w: w.sum().square() / _squares(w).clamp(min=1)),
            "Only a ratio is wanted, and small weights are as good as large ones: divide by the "
            "largest weight first, then a guard at 1 does no harm.",
            telling=1,
        ),
        Mistake(
            "the plain formula, without any guard",
            lambda weights: weights.sum().square() / weights.square().sum(),
            "Right on friendly weights. Where all are 0 it is 0/0, and huge ones overflow when "
            "squared: divide by the largest weight first.",
            telling=2,
        ),
        Mistake(
            "squares that overflow in float32",
            lambda weights: _safe(weights.sum().square(), weights.square().sum()),
            "Weights are exponentials and can be huge: scale them by the largest first, which "
            "changes nothing else.",
            telling=1,
        ),
        Mistake(
            "1 / Σw² of weights that do not sum to 1",
            _wide(lambda w: 1 / _squares(w)),
            "That formula is for weights that sum to 1. Here they do not: (Σw)² belongs on top.",
            telling=3,
        ),
    ),
    alternatives=(_size_by_normalizing, _size_by_variation, _size_by_logs),
    hints=(
        "Two sums are compared: what becomes of the result if all weights are multiplied by 10?",
        "(Σw)² / Σw². Weights can be huge or all zero: divide them by the largest first, and keep "
        "every denominator above zero.",
        "Once the largest weight is 1, Σw² is at least 1:\n\n"
        "    weights = weights / weights.max().clamp(min=torch.finfo(weights.dtype).tiny)\n"
        "    return weights.sum().square() / ....clamp(min=1)",
    ),
)
