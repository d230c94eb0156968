"""How many samples a set of weighted samples is worth."""

from collections.abc import Iterator

import torch
from torch import Tensor

from rlcourse.checks.declaring import Case, CaseSampler, tensor


def cases(draw: CaseSampler) -> Iterator[Case]:
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


def _of_softmax(guarded):
    def size(w):
        return 1 / _squares(w.softmax(0)) * (bool(w.any()) or not guarded)

    return _wide(size)


def _of_softmax_by_logs(weights):
    wide = weights.double()
    size = (2 * wide.logsumexp(0) - (2 * wide).logsumexp(0)).exp()
    return (size * bool(weights.any())).to(weights.dtype)


def _by_sample_variance(guarded):
    def size(w):
        if not w.any():
            return torch.zeros_like(w[0])
        if guarded and len(w) == 1:
            return torch.ones_like(w[0])
        return len(w) / (1 + w.var() / w.mean() ** 2)

    return _wide(size)


def _size_by_normalizing(weights):
    total = weights.double().sum()
    if total == 0:
        return torch.zeros_like(weights[0])
    return (1 / (weights.double() / total).square().sum()).to(weights.dtype)


def _size_by_logs(weights):
    logs = weights.log()
    return (2 * logs.logsumexp(0) - (2 * logs).logsumexp(0)).exp().nan_to_num(0)


alternatives = (_size_by_normalizing, _size_by_logs)
