"""The critic's clipped loss."""

from collections.abc import Iterator

import torch
from torch import Tensor

from rlcourse.algorithms.policies import masked_mean
from rlcourse.checks.declaring import Case, CaseSampler, Sketch, tensor


def cases(draw: CaseSampler) -> Iterator[Case]:
    def case(label: str, mask: Tensor, dtype=torch.float64, spread=0.4, **options) -> Case:
        old = draw.normal(*mask.shape)
        arguments = {
            "values": old + draw.normal(*mask.shape, scale=spread),
            "returns": old + draw.normal(*mask.shape),
            "old_values": old,
        }
        arguments = {name: value.to(dtype) for name, value in arguments.items()}
        return Case(label, {**arguments, "mask": mask, **options})

    def worked(label: str, value: float, target: float) -> Case:
        numbers = {"values": value, "returns": target, "old_values": 0.5}
        arguments = {name: tensor([[number]]) for name, number in numbers.items()}
        return Case(f"worked: {label}", {**arguments, "mask": torch.ones(1, 1) > 0})

    yield case("different lengths", draw.mask(draw.size(3, 4), draw.size(5, 6)))
    yield worked("inside the band", 0.6, 1.0)
    yield worked("outside, toward the target", 0.9, 1.0)
    yield worked("outside, away from the target", 0.1, 1.0)
    for label, logprobs, mask in draw.batches():
        yield case(label, mask, dtype=logprobs.dtype)
    mask = draw.mask(draw.size(4, 5), draw.size(6, 7))
    yield case("a narrow band", mask, clip=0.05)
    yield case("a wide band", mask, clip=5.0, spread=1.0)
    yield case("values have not moved", mask, spread=0.0)


def _by_loop(values, returns, old_values, mask, clip=0.2):
    total, count = values.new_zeros(()), 0
    for i in range(len(values)):
        for t in range(values.shape[1]):
            if mask[i, t]:
                old, target, v = float(old_values[i, t]), float(returns[i, t]), values[i, t]
                bounded = v if abs(float(v) - old) <= clip else old + (clip if v > old else -clip)
                apart, bounded_apart = abs(float(v) - target), abs(float(bounded) - target)
                total = total + (v - target if apart >= bounded_apart else bounded - target) ** 2
                count += 1
    return total / (2 * max(count, 1))


def _by_where(values, returns, old_values, mask, clip=0.2):
    old, target = old_values.detach().double(), returns.detach().double()
    v, weights = values.double(), mask.double() / mask.double().sum().clamp(min=1)
    bounded = old + torch.clip(v - old, -clip, clip)
    own, near = (v - target).pow(2), (bounded - target).pow(2)
    return (0.5 * weights * torch.where(near > own, near, own)).sum().to(values.dtype)


def line_by_line(values, returns, old_values, mask, clip=0.2):
    targets, old = returns.detach(), old_values.detach()
    near = old + (values - old).clamp(-clip, clip)
    own, bounded = (values - targets) ** 2, (near - targets) ** 2
    larger = torch.maximum(own, bounded)
    mean = (larger * mask).sum() / mask.sum().clamp(min=1)
    return mean / 2


sketch = Sketch(line_by_line, masked_mean)
alternatives = (_by_loop, _by_where)
