"""How often a reward model is right."""

from collections.abc import Iterator

import torch
from torch import Tensor

from rlcourse.algorithms.reward_models import reward_accuracy
from rlcourse.checks.declaring import Case, CaseSampler, tensor


def cases(draw: CaseSampler) -> Iterator[Case]:
    def case(label: str, chosen: Tensor, rejected: Tensor) -> Case:
        """In float32, as a model gives rewards; then a share needs no thought of precision."""
        return Case(label, {"chosen": chosen.float(), "rejected": rejected.float()})

    worked = tensor([2.0, 0.1, -1.0, 3.0]), tensor([1.0, 0.5, -2.0, 0.0])
    yield case("worked: three of four", *worked)
    yield case("ties", tensor([1.0, 1.0, 0.0, 2.0]), tensor([1.0, 0.0, 0.0, 1.0]))
    yield case("all equal", torch.zeros(3), torch.zeros(3))
    yield case("one wrong by far", tensor([1.0, 1.1, -50.0]), tensor([0.9, 1.0, 2.0]))
    yield case("all negative", -tensor([1.0, 2.0, 3.0, 4.0]), -tensor([2.0, 1.5, 4.0, 5.0]))
    for n in (1, draw.size(5, 9), draw.size(11, 15)):
        yield case(f"{n} random pairs", draw.normal(n), draw.normal(n))


def _half_ties(chosen, rejected):
    return reward_accuracy(chosen, rejected) + 0.5 * (chosen == rejected).to(chosen.dtype).mean()


alternatives = (
    lambda chosen, rejected: ((chosen - rejected).sign() == 1).to(chosen.dtype).mean(),
    lambda chosen, rejected: chosen.new_tensor(
        sum(bool(a > b) for a, b in zip(chosen, rejected, strict=True)) / len(chosen)
    ),
)
