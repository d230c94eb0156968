"""The loss of Bradley and Terry's model."""

from collections.abc import Iterator

import torch
import torch.nn.functional as F
from torch import Tensor

from rlcourse.checks.declaring import Case, CaseSampler, Sketch, tensor
from rlcourse.courses.modules import beside

by_exponentials = beside(__file__, "preference_probability.py").by_exponentials


def cases(draw: CaseSampler) -> Iterator[Case]:
    def case(label: str, chosen: Tensor, rejected: Tensor) -> Case:
        return Case(label, {"chosen": chosen, "rejected": rejected})

    yield case("worked: equal rewards", tensor([0.5]), tensor([0.5]))
    yield case("gaps of 2 and −2", tensor([2.0, 0.0]), tensor([0.0, 2.0]))
    n = draw.size(3, 5)
    chosen, rejected = draw.normal(n), draw.normal(n)
    yield case("random rewards", chosen, rejected)
    yield case("the same gaps, 10 lower", chosen - 10, rejected - 10)
    yield case("one pair", draw.normal(1), draw.normal(1))
    yield case("gaps of ±100", tensor([60.0, -40.0]), tensor([-40.0, 60.0]))
    yield case("gaps of ±2000", tensor([1000.0, -1000.0]), tensor([-1000.0, 1000.0]))
    yield case("large gaps in float32", tensor([0, 0, 0]).float(), tensor([120, 0, -120]).float())
    yield case("float32", draw.normal(6).float(), draw.normal(6).float())
    many = draw.size(20, 30)
    yield case("many pairs", draw.normal(many, scale=3.0), draw.normal(many))


def _mean(per_pair):
    return lambda chosen, rejected: per_pair(chosen, rejected).mean()


def line_by_line(chosen, rejected):
    gap = chosen - rejected
    log_p = F.logsigmoid(gap)
    per_pair = -log_p
    return per_pair.mean()


sketch = Sketch(line_by_line, by_exponentials)
alternatives = (
    _mean(lambda chosen, rejected: F.softplus(rejected - chosen)),
    lambda chosen, rejected: F.binary_cross_entropy_with_logits(
        chosen - rejected, torch.ones_like(chosen - rejected)
    ),
)
