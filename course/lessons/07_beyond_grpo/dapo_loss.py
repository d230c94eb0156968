"""DAPO's loss: room upward, and all tokens alike."""

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


def cases(draw: CaseSampler) -> Iterator[Case]:
    yield from batches(draw)
    for ratio, advantage in ((1.24, 1.0), (1.5, 1.0), (1.5, -1.0), (0.76, -1.0)):
        yield one_token(f"worked: ratio {ratio}, advantage {advantage:+.0f}", ratio, advantage)
    yield one_token("worked: a ratio of 1.5, room to 1.8", 1.5, 1.0, clip_high=0.8)
    room = {"clip_low": 0.1, "clip_high": 0.9}
    yield one_token("worked: a ratio of 0.6 in a band from 0.9 to 1.9", 0.6, -1.0, **room)
    rows, tokens = draw.shape()
    for label, low, high in (
        ("a narrow band", 0.05, 0.1),
        ("much room upward", 0.1, 0.9),
        ("more room downward", 0.4, 0.1),
    ):
        logprobs, mask = draw.logprobs(rows, tokens), draw.mask(rows, tokens)
        yield case_of(draw, label, logprobs, mask, clip_low=low, clip_high=high)
    logprobs, mask = draw.logprobs(6, 9), draw.mask(6, 9)
    yield case_of(draw, "only clip_high is given", logprobs, mask, clip_high=0.5)
    yield case_of(draw, "only clip_low is given", logprobs, mask, clip_low=0.05)
    per_token = draw.rewards(54).reshape(6, 9)
    yield case_of(draw, "an advantage for every token", logprobs, mask, advantages=per_token)


def by_loop(logprobs, old_logprobs, advantages, mask, clip_low=0.2, clip_high=0.28):
    terms = []
    for i, t in mask.bool().nonzero().tolist():
        a = float(advantages[i] if advantages.dim() == 1 else advantages[i, t])
        ratio = (logprobs[i, t] - float(old_logprobs[i, t])).exp()
        terms.append(-torch.min(a * ratio, a * ratio.clamp(1 - clip_low, 1 + clip_high)))
    return torch.stack(terms).mean() if terms else (0 * logprobs).sum()


def line_by_line(logprobs, old_logprobs, advantages, mask, clip_low=0.2, clip_high=0.28):
    a = advantages.detach()
    if a.dim() == 1:
        a = a[:, None]
    old = old_logprobs.detach()
    ratio = (logprobs - old).exp()
    clipped = ratio.clamp(1 - clip_low, 1 + clip_high)
    objective = torch.minimum(ratio * a, clipped * a)
    loss = (objective * mask).sum() / mask.sum().clamp(min=1)
    return -loss


sketch = Sketch(line_by_line, aggregate)
alternatives = (by_loop,)
