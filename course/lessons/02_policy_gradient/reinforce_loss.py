"""The REINFORCE loss over sampled completions."""

from collections.abc import Iterator

import torch
from torch import Tensor

from rlcourse.algorithms.policy_gradient import reinforce_loss
from rlcourse.checks.declaring import Case, CaseSampler, Sketch, tensor


def cases(draw: CaseSampler) -> Iterator[Case]:
    def case(label: str, logprobs: Tensor, advantages: Tensor, mask: Tensor) -> Case:
        return Case(label, {"logprobs": logprobs, "advantages": advantages, "mask": mask})

    worked = tensor([[-0.5, -1.0], [-2.0, -3.0]])
    padded = torch.tensor([[True, True], [True, False]])
    yield case("worked: two completions", worked, tensor([1.0, 0.5]), padded)
    for label, logprobs, mask in draw.batches():
        yield case(label, logprobs, draw.rewards(len(logprobs), logprobs.dtype), mask)
    rows, tokens = draw.size(5, 7), draw.size(2, 4)
    binary = draw.binary_rewards(rows)
    yield case("rewards of 0 and 1", draw.logprobs(rows, tokens), binary, draw.mask(rows, tokens))
    rows, tokens = draw.shape()
    nothing = torch.zeros(rows).double()
    yield case("no reward", draw.logprobs(rows, tokens), nothing, draw.mask(rows, tokens))
    second_empty = torch.tensor([[True, True], [False, False]])
    yield case("an empty row beside a praised one", worked, tensor([1.0, 0.5]), second_empty)
    yield _every_sentence(draw)


def _every_sentence(draw: CaseSampler) -> Case:
    """All V² sentences of two independent tokens, weighted so that the gradient is exact."""
    first, second = (draw.normal(3).log_softmax(0) for _ in range(2))
    logprobs = torch.stack([first.repeat_interleave(3), second.repeat(3)], dim=1)
    weighted = len(logprobs) * logprobs.sum(1).exp() * draw.rewards(len(logprobs))
    label = "every sentence of a toy model, weighted by its probability"
    mask = torch.ones_like(logprobs).bool()
    return Case(label, {"logprobs": logprobs, "advantages": weighted, "mask": mask})


def _summed(logprobs: Tensor, mask: Tensor) -> Tensor:
    return (logprobs * mask).sum(1)


def token_mean_loss(logprobs, advantages, mask):
    return -(advantages.detach() * _summed(logprobs, mask) / mask.sum(1).clamp(min=1)).mean()


def baseline_loss(logprobs, advantages, mask):
    return reinforce_loss(logprobs, advantages - advantages.mean(), mask)


def _loss_by_loop(logprobs, advantages, mask):
    total = logprobs.new_zeros(())
    for i in range(len(advantages)):
        for t in range(logprobs.shape[1]):
            if mask[i, t]:
                total = total - advantages[i].item() * logprobs[i, t]
    return total / len(advantages)


def _loss_in_float64(logprobs, advantages, mask):
    selected = torch.where(mask.bool(), logprobs, 0.0).double()
    per_row = advantages.detach().double() * selected.sum(dim=-1)
    return per_row.mean().neg().to(logprobs.dtype)


def line_by_line(logprobs, advantages, mask):
    a = advantages.detach()
    per_token = torch.where(mask.bool(), logprobs, 0.0)
    rows = per_token.sum(1)
    per_row = a * rows
    return -per_row.mean()


def last_token(mask):
    return (mask.long().sum(1, keepdim=True) - 1).clamp(min=0)


sketch = Sketch(line_by_line, last_token)
alternatives = (_loss_by_loop, _loss_in_float64)
