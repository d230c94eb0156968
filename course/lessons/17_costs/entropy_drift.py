"""Which way a step moves the entropy, read from a batch."""

from collections.abc import Iterator

import torch
from torch import Tensor

from rlcourse.algorithms.policies import masked_mean
from rlcourse.checks.declaring import Case, CaseSampler, Sketch, tensor


def cases(draw: CaseSampler) -> Iterator[Case]:
    def case(label: str, logprobs: Tensor, entropy: Tensor, advantages: Tensor, mask) -> Case:
        arguments = {"logprobs": logprobs, "entropy": entropy}
        return Case(label, {**arguments, "advantages": advantages, "mask": mask})

    worked = tensor([[0.9], [0.1]]).log(), tensor([[0.325], [0.325]])
    yield case("worked: a likely word praised", *worked, tensor([1.0, -1.0]), torch.ones(2, 1) > 0)
    for label, logprobs, mask in draw.batches():
        entropy = draw.uniform(*logprobs.shape, low=0.05, high=2).to(logprobs.dtype)
        advantages = draw.rewards(len(logprobs), logprobs.dtype)
        yield case(label, logprobs, entropy, advantages, mask)
    rows, tokens = draw.shape()
    mask, logprobs = draw.mask(rows, tokens), draw.logprobs(rows, tokens)
    entropy, advantages = draw.uniform(rows, tokens, low=0.05, high=2), draw.rewards(rows)
    yield case("advantages whose mean is not 0", logprobs, entropy, advantages + 2, mask)
    yield case("advantages of 0", logprobs, entropy, 0 * advantages, mask)
    yield case("words as likely as expected", -entropy, entropy, advantages, mask)
    nowhere = logprobs.masked_fill(~mask, -torch.inf)
    yield case("no numbers on padding", nowhere, entropy, advantages, mask)


def line_by_line(logprobs, entropy, advantages, mask):
    a = advantages[:, None]
    surprise = logprobs + entropy
    per_token = surprise * a
    kept = per_token.masked_fill(~mask.bool(), 0)
    total = kept.sum()
    count = mask.sum()
    return -total / count.clamp(min=1)


def by_loop(logprobs, entropy, advantages, mask):
    total, count = logprobs.new_zeros(()), 0
    for i, t in mask.bool().nonzero().tolist():
        total = total - advantages[i] * (logprobs[i, t] + entropy[i, t])
        count += 1
    return total / max(count, 1)


def by_selection(logprobs, entropy, advantages, mask):
    real = mask.bool()
    a = advantages[:, None].expand_as(logprobs)[real]
    return -(a @ (logprobs[real] + entropy[real])) / max(len(a), 1)


sketch = Sketch(line_by_line, masked_mean)
alternatives = (by_loop, by_selection)
oracle = by_loop
