"""REINFORCE on the completions of an older policy."""

from collections.abc import Iterator

import torch
from torch import Tensor

from rlcourse.algorithms.importance_sampling import importance_weights
from rlcourse.checks.declaring import Case, CaseSampler, Sketch, tensor


def cases(draw: CaseSampler) -> Iterator[Case]:
    def case(label: str, logprobs: Tensor, old: Tensor, advantages: Tensor, mask: Tensor) -> Case:
        named = {"logprobs": logprobs, "old_logprobs": old, "advantages": advantages, "mask": mask}
        return Case(label, named)

    new, old = tensor([[0.7, 0.1]]).log(), tensor([[0.5, 0.3]]).log()
    yield case("worked: ratios 1.4 and 1/3", new, old, tensor([1.0]), torch.ones(1, 2) > 0)
    for label, logprobs, mask in draw.batches():
        old = draw.logprobs(*logprobs.shape).to(logprobs.dtype)
        yield case(label, logprobs, old, draw.rewards(len(logprobs), logprobs.dtype), mask)
    rows, tokens = draw.shape()
    logprobs, mask = draw.logprobs(rows, tokens), draw.mask(rows, tokens)
    for ratio, advantage in ((20, -1.0), (0.05, 2.5), (1.5, -2.5)):
        old = tensor([[-5.0]])
        row = old + tensor([[ratio]]).log(), old, tensor([advantage]), torch.ones(1, 1) > 0
        yield case(f"ratio {ratio:g}, advantage {advantage:g}", *row)
    yield case("the first step: πθ = πold", logprobs, logprobs.clone(), draw.rewards(rows), mask)
    for rows, tokens in (draw.shape(), (draw.size(3, 4),) * 2):
        advantages = draw.normal(rows, tokens)
        label = "an advantage for each token" + ", N equals T" * (rows == tokens)
        logprobs, old = draw.logprobs(rows, tokens), draw.logprobs(rows, tokens)
        yield case(label, logprobs, old, advantages, draw.mask(rows, tokens))


def _loss_by_loop(logprobs, old_logprobs, advantages, mask):
    total = logprobs.new_zeros(())
    for i in range(len(logprobs)):
        for t in range(logprobs.shape[1]):
            if mask[i, t]:
                advantage = advantages[i] if advantages.dim() == 1 else advantages[i, t]
                ratio = (logprobs[i, t] - old_logprobs[i, t].item()).exp()
                total = total - ratio * advantage.item()
    return total / len(logprobs)


def _empty_completions_weigh_one(logprobs, old_logprobs, advantages, mask):
    """As lesson 04 derives it: the product over the completion, 1 where it has no token."""
    weights = ((logprobs - old_logprobs.detach()) * mask).sum(1).exp()
    of_row = advantages if advantages.dim() == 1 else advantages.mean(1)
    return -(weights * of_row.detach()).mean()


def line_by_line(logprobs, old_logprobs, advantages, mask):
    a = advantages.detach()
    if a.dim() == 1:
        a = a[:, None]
    old = old_logprobs.detach()
    ratio = (logprobs - old).exp()
    weights = ratio * mask
    rows = (weights * a).sum(1)
    return -rows.mean()


sketch = Sketch(line_by_line, importance_weights)
alternatives = (_loss_by_loop,)
