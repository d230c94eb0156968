"""Bradley and Terry's model of a comparison."""

from collections.abc import Iterator

import torch
import torch.nn.functional as F  # noqa: F401  (the page names it)
from torch import Tensor

from rlcourse.checks.declaring import Case, CaseSampler, tensor


def cases(draw: CaseSampler) -> Iterator[Case]:
    def case(label: str, reward_a: Tensor, reward_b: Tensor) -> Case:
        return Case(label, {"reward_a": reward_a, "reward_b": reward_b})

    yield case("worked: equal rewards", tensor([2.0]), tensor([2.0]))
    yield case("worked: a gap of 1, both ways", tensor([1.0, 0.0]), tensor([0.0, 1.0]))
    n = draw.size(3, 5)
    a, b = draw.normal(n), draw.normal(n)
    yield case("random rewards", a, b)
    yield case("the same gaps, 50 higher", a + 50, b + 50)
    yield case("both negative", -draw.uniform(4, low=1, high=3), -draw.uniform(4, low=1, high=3))
    yield case("rewards of ±1000", tensor([1000.0, -1000.0]), tensor([999.0, -1001.0]))
    yield case("all against all", draw.normal(3, 1), draw.normal(1, 4))
    yield case("two scalars", draw.normal(), draw.normal())
    yield case("float32", draw.normal(4).float(), draw.normal(4).float())


def by_exponentials(reward_a, reward_b):
    return reward_a.exp() / (reward_a.exp() + reward_b.exp())


alternatives = (
    lambda reward_a, reward_b: 1 / (1 + torch.exp(reward_b - reward_a)),
    lambda reward_a, reward_b: torch.stack(
        torch.broadcast_tensors(reward_a, reward_b), dim=-1
    ).softmax(dim=-1)[..., 0],
)
