"""A loss in which no token loses its gradient."""

from collections.abc import Iterator

import torch
from torch import Tensor

from rlcourse.algorithms.policies import masked_mean
from rlcourse.checks.declaring import Case, CaseSampler, Sketch, tensor
from rlcourse.courses.modules import beside

_batches = beside(__file__, "batches.py")
batches = _batches.batches


def cases(draw: CaseSampler) -> Iterator[Case]:
    def case(label: str, logprobs: Tensor, mask: Tensor, **given) -> Case:
        arguments = {
            "logprobs": logprobs,
            "old_logprobs": draw.near(logprobs, 0.8),
            "advantages": draw.rewards(len(logprobs), logprobs.dtype),
            "mask": mask,
        }
        return Case(label, arguments | given)

    for label, logprobs, mask in batches(draw):
        yield case(label, logprobs, mask, cap=1.5)
    old, one = tensor([[-4.0]]), torch.ones(1, 1) > 0
    for ratio, advantage in ((1.5, 1.0), (8.0, 1.0), (0.1, -1.0), (20.0, -1.0)):
        yield case(
            f"worked: ratio {ratio:g}, advantage {advantage:+.0f}",
            old + tensor([[ratio]]).log(),
            one,
            old_logprobs=old,
            advantages=tensor([advantage]),
        )
    rows, tokens = draw.shape()
    logprobs, mask = draw.logprobs(rows, tokens), draw.mask(rows, tokens)
    far = draw.near(logprobs, 2)
    yield case("no cap given", logprobs, mask, old_logprobs=far)
    yield case("a cap of 1", logprobs, mask, cap=1.0)
    yield case("a high cap", logprobs, mask, old_logprobs=far, cap=100.0)
    yield case("the first update", logprobs, mask, old_logprobs=logprobs.clone())
    logprobs, mask = draw.logprobs(6, 9), draw.mask(6, 9)
    per_token = draw.rewards(54).reshape(6, 9)
    yield case("an advantage for every token", logprobs, mask, advantages=per_token, cap=1.5)
    mask = draw.mask(2, 3)
    rare = draw.logprobs(2, 3).masked_fill(~mask, -200).float()
    logprobs = draw.logprobs(2, 3).float()
    yield case("padding of log-prob −200, float32", logprobs, mask, old_logprobs=rare)


def by_loop(logprobs, old_logprobs, advantages, mask, cap=5.0):
    terms = []
    for i, t in mask.bool().nonzero().tolist():
        a = float(advantages[i] if advantages.dim() == 1 else advantages[i, t])
        w = min(cap, float((logprobs[i, t] - old_logprobs[i, t]).detach().exp()))
        terms.append(-w * a * logprobs[i, t])
    return torch.stack(terms).mean() if terms else (0 * logprobs).sum()


def line_by_line(logprobs, old_logprobs, advantages, mask, cap=5.0):
    a = advantages.detach()
    if a.dim() == 1:
        a = a[:, None]
    kept = mask.bool()
    old = old_logprobs.detach()
    ratio = (logprobs - old).masked_fill(~kept, 0).exp()
    weights = ratio.detach().clamp(max=cap)
    terms = weights * a * logprobs
    average = masked_mean(terms, mask)
    return -average


sketch = Sketch(line_by_line)
alternatives = (by_loop,)
