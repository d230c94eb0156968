"""GSPO's loss: one ratio for a whole completion."""

from collections.abc import Iterator

import torch

from rlcourse.algorithms.policies import masked_mean
from rlcourse.checks.declaring import Case, CaseSampler, Sketch, tensor
from rlcourse.courses.modules import beside

clipped_losses = beside(__file__, "../05_ppo/clipped_losses.py")
batches = clipped_losses.batches
case_of = clipped_losses.case_of
one_token = clipped_losses.one_token
other_bands = clipped_losses.other_bands


def cases(draw: CaseSampler) -> Iterator[Case]:
    yield from batches(draw)
    for ratio, advantage in ((1.5, 1.0), (1.5, -1.0), (0.556, -1.0)):
        yield one_token(f"worked: ratio {ratio}, advantage {advantage:+.0f}", ratio, advantage)
    yield from other_bands()
    old = tensor([[-1.0, -2.0]])
    ratios = tensor([[2.0, 0.5]]).log()
    arguments = {"old_logprobs": old, "advantages": tensor([1.0])}
    both = torch.ones(1, 2) > 0
    yield case_of(draw, "worked: ratios 2 and ½ make 1", old + ratios, both, **arguments)
    rows, tokens = draw.size(5, 6), draw.size(3, 4)
    logprobs, mask = draw.logprobs(rows, tokens), draw.mask(rows, tokens)
    yield case_of(draw, "a narrow band", logprobs, mask, clip=0.01)
    yield case_of(draw, "a wide band", logprobs, mask, clip=2.0)
    rare = logprobs - 4
    far = rare + draw.normal(rows, 1)
    yield case_of(draw, "whole completions that moved far", rare, mask, old_logprobs=far)


def _mean_log_ratio(logprobs, old_logprobs, mask):
    return masked_mean(logprobs - old_logprobs, mask, dim=1)


def by_loop(logprobs, old_logprobs, advantages, mask, clip=0.2):
    total = logprobs.new_zeros(())
    for i, length in enumerate(mask.sum(1).int().tolist()):
        if length:
            difference = logprobs[i, :length] - old_logprobs[i, :length].detach()
            ratio, a = (difference.sum() / length).exp(), float(advantages[i])
            total = total - torch.min(a * ratio, a * ratio.clamp(1 - clip, 1 + clip))
    return total / len(mask)


def token_form(logprobs, old_logprobs, advantages, mask, clip=0.2):
    """GSPO-token (equation 13 of the paper): the completion's ratio, each token's gradient."""
    whole = _mean_log_ratio(logprobs, old_logprobs, mask).detach().exp()[:, None]
    ratio, a = whole * (logprobs - logprobs.detach()).exp(), advantages.detach()[:, None]
    objective = torch.minimum(ratio * a, ratio.clamp(1 - clip, 1 + clip) * a)
    return -masked_mean(objective, mask, dim=1).mean()


def line_by_line(logprobs, old_logprobs, advantages, mask, clip=0.2):
    old = old_logprobs.detach()
    log_ratio = ((logprobs - old) * mask).sum(1) / mask.sum(1).clamp(min=1)
    ratio = log_ratio.exp()
    clipped = ratio.clamp(1 - clip, 1 + clip)
    a = advantages.detach()
    objective = torch.minimum(ratio * a, clipped * a)
    rows = objective * mask.bool().any(1)
    return -rows.mean()


sketch = Sketch(line_by_line, masked_mean)
alternatives = (by_loop, token_form)
