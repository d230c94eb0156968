"""The DPO loss on pairs of completions."""

from collections.abc import Iterator

import torch
import torch.nn.functional as F
from torch import Tensor

from rlcourse.checks.declaring import Case, CaseSampler, Sketch, tensor

POLICY = ("chosen_logprobs", "rejected_logprobs")


REFERENCE = ("ref_chosen_logprobs", "ref_rejected_logprobs")


def cases(draw: CaseSampler) -> Iterator[Case]:
    def case(label: str, *logprobs: Tensor, **options) -> Case:
        arguments = dict(zip((*POLICY, *REFERENCE), logprobs, strict=True))
        return Case(label, {**arguments, **options})

    def pairs(n: int, scale: float = 5.0) -> list[Tensor]:
        return [scale * draw.logprobs(n) for _ in range(4)]

    yield case("worked: one pair", *tensor([[-4.0], [-6.0], [-5.0], [-5.0]]))
    same = pairs(3)[:2]
    yield case("at the start, the reference itself", *same, *(t.clone() for t in same))
    yield case("a few pairs", *pairs(draw.size(3, 5)))
    yield case("β = 0.5", *pairs(draw.size(3, 5)), beta=0.5)
    yield case("β = 2", *pairs(draw.size(3, 5), 0.7), beta=2.0)
    yield case("one mislabeled in five", *pairs(4), label_smoothing=0.2)
    yield case("β = 0.4, one mislabeled in ten", *pairs(5), beta=0.4, label_smoothing=0.1)
    fell = pairs(3)
    yield case("both have become unlikelier", fell[0] - 20, fell[1] - 30, *fell[2:])
    wrong = tensor([-30000.0, -20.0]), tensor([-20.0, -10000.0])
    yield case("margins of −3000 and 1000", *wrong, *tensor([[-25.0, -25.0], [-30.0, -30.0]]))
    yield case("float32", *(t.float() for t in pairs(4)))
    yield case("many pairs", *pairs(draw.size(16, 20)), beta=0.3)


def _by_cross_entropy(
    chosen_logprobs, rejected_logprobs, ref_chosen_logprobs, ref_rejected_logprobs,
    beta=0.1, label_smoothing=0.0,
):  # fmt: skip
    chosen = beta * (chosen_logprobs - ref_chosen_logprobs.detach())
    rejected = beta * (rejected_logprobs - ref_rejected_logprobs.detach())
    both = torch.stack([chosen, rejected], dim=1).log_softmax(dim=1)
    weights = both.new_tensor([1 - label_smoothing, label_smoothing])
    return -(both * weights).sum(dim=1).mean(), chosen.detach(), rejected.detach()


def _by_loop(
    chosen_logprobs, rejected_logprobs, ref_chosen_logprobs, ref_rejected_logprobs,
    beta=0.1, label_smoothing=0.0,
):  # fmt: skip
    losses, chosen, rejected = [], [], []
    for i in range(len(chosen_logprobs)):
        chosen.append(beta * (chosen_logprobs[i] - ref_chosen_logprobs[i].item()))
        rejected.append(beta * (rejected_logprobs[i] - ref_rejected_logprobs[i].item()))
        losses.append(smoothed(chosen[-1] - rejected[-1], label_smoothing))
    total = sum(losses) / len(losses)
    return total, torch.stack(chosen).detach(), torch.stack(rejected).detach()


def line_by_line(
    chosen_logprobs, rejected_logprobs, ref_chosen_logprobs, ref_rejected_logprobs,
    beta=0.1, label_smoothing=0.0,
):  # fmt: skip
    ref_chosen, ref_rejected = ref_chosen_logprobs.detach(), ref_rejected_logprobs.detach()
    chosen, rejected = chosen_logprobs - ref_chosen, rejected_logprobs - ref_rejected
    chosen, rejected = beta * chosen, beta * rejected
    margin = chosen - rejected
    right, flipped = F.logsigmoid(margin), F.logsigmoid(-margin)
    per_pair = -((1 - label_smoothing) * right + label_smoothing * flipped)
    loss = per_pair.mean()
    return loss, chosen.detach(), rejected.detach()


def mixed(right, flipped, share):
    weights = torch.tensor([1 - share, share]).log()
    return torch.logaddexp(right + weights[0], flipped + weights[1])


def robust(right, flipped, share):
    return ((1 - share) * right - share * flipped) / (1 - 2 * share)


def smoothed(margin, share):
    return -(1 - share) * F.logsigmoid(margin) - share * F.logsigmoid(-margin)


sketch = Sketch(line_by_line, mixed, robust, smoothed)
alternatives = (_by_cross_entropy, _by_loop)
