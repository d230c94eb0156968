"""Dr. GRPO's loss: the clip, summed, and divided by a constant."""

from collections.abc import Iterator

import torch

from rlcourse.algorithms.beyond_grpo import aggregate
from rlcourse.checks.declaring import Case, CaseSampler, Sketch
from rlcourse.courses.modules import beside

clipped_losses = beside(__file__, "../05_ppo/clipped_losses.py")
batches = clipped_losses.batches
case_of = clipped_losses.case_of
columns = clipped_losses.columns
one_token = clipped_losses.one_token
other_bands = clipped_losses.other_bands


def cases(draw: CaseSampler) -> Iterator[Case]:
    limit = draw.integer(13, 20)  # longer than any batch drawn here
    yield from batches(draw, max_tokens=limit)
    for ratio, advantage in ((1.5, 1.0), (1.5, -1.0), (0.556, -1.0)):
        label = f"worked: ratio {ratio}, advantage {advantage:+.0f}"
        yield one_token(label, ratio, advantage, max_tokens=4)
    yield from other_bands(max_tokens=4)
    rows, tokens = draw.shape()
    logprobs, mask = draw.logprobs(rows, tokens), draw.mask(rows, tokens)
    yield case_of(draw, "another clip", logprobs, mask, max_tokens=limit, clip=0.05)
    yield case_of(draw, "max_tokens is T", logprobs, mask, max_tokens=tokens)
    per_token = draw.rewards(rows * tokens).reshape(rows, tokens)
    arguments = {"max_tokens": limit, "advantages": per_token}
    yield case_of(draw, "an advantage for every token", logprobs, mask, **arguments)


def by_cases(logprobs, old_logprobs, advantages, mask, max_tokens, clip=0.2):
    """In float64, with the side of the band chosen by the sign of the advantage."""
    ratio = (logprobs.double() - old_logprobs.detach().double()).exp()
    a = columns(advantages.detach()).double()
    clipped = torch.where(a > 0, ratio.clamp(max=1 + clip), ratio.clamp(min=1 - clip))
    rows = torch.where(mask.bool(), -a * clipped, 0.0).sum(dim=1) / max_tokens
    return rows.mean().to(logprobs.dtype)


def line_by_line(logprobs, old_logprobs, advantages, mask, max_tokens, clip=0.2):
    a = advantages.detach()
    if a.dim() == 1:
        a = a[:, None]
    old = old_logprobs.detach()
    ratio = (logprobs - old).exp()
    clipped = ratio.clamp(1 - clip, 1 + clip)
    objective = torch.minimum(ratio * a, clipped * a)
    loss = (objective * mask).sum() / (len(mask) * max_tokens)
    return -loss


def divided_by_std(advantages):
    return advantages / (advantages.std(correction=min(1, len(advantages) - 1)) + 1e-4)


sketch = Sketch(line_by_line, aggregate, divided_by_std)
alternatives = (by_cases,)
