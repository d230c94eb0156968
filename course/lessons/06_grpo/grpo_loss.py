"""GRPO's loss: the cases it must survive, and other ways to write it."""

from collections.abc import Iterator

import torch
from torch import Tensor

from rlcourse.algorithms.policies import masked_mean
from rlcourse.checks.declaring import Case, CaseSampler, Sketch, mask_of, tensor
from rlcourse.courses.modules import beside

both_signs = beside(__file__, "../05_ppo/clipped_losses.py").both_signs


def _case(draw: CaseSampler, label: str, logprobs: Tensor, mask: Tensor, **given) -> Case:
    arguments = {
        "logprobs": logprobs,
        "old_logprobs": draw.near(logprobs, 0.4),
        "ref_logprobs": draw.near(logprobs, 0.6),
        "advantages": draw.rewards(len(logprobs), logprobs.dtype),
        "mask": mask,
    }
    return Case(label, {**arguments, **given})


def _worked(label: str, probability: float, reference: float, advantage: float, **options) -> Case:
    """One token whose old probability was ½."""
    names = ("logprobs", "old_logprobs", "ref_logprobs")
    of_token = {n: tensor([[p]]).log() for n, p in zip(names, (probability, 0.5, reference))}  # noqa: B905
    mask = torch.ones(1, 1) > 0
    return Case(label, {**of_token, "advantages": tensor([advantage]), "mask": mask, **options})


def cases(draw: CaseSampler) -> Iterator[Case]:
    rows, tokens = draw.size(3, 4), draw.size(5, 6)
    logprobs, mask = draw.logprobs(rows, tokens), draw.mask(rows, tokens)
    yield _case(draw, "different lengths", logprobs, mask, **both_signs(draw, logprobs))
    boundary = {"clip": 0.2, "beta": 0.02}
    yield _worked("worked: just inside the band", 0.5999, 0.1, 0.01, **boundary)
    yield _worked("worked: outside, and praised", 0.75, 0.5, 1.0, clip=0.2, beta=0.0)
    yield _worked("worked: outside, and blamed", 0.75, 0.5, -1.0, clip=0.2, beta=0.0)
    yield _worked("worked: below the band, and blamed", 0.278, 0.5, -1.0, clip=0.3, beta=0.0)
    yield _worked("worked: a ratio of 1.5 in a band of 0.8", 0.75, 0.5, 1.0, clip=0.8, beta=0.0)
    for label, logprobs, mask in draw.batches():
        yield _case(draw, label, logprobs, mask)
    rows, tokens = draw.shape()
    logprobs, mask = draw.logprobs(rows, tokens), draw.mask(rows, tokens)
    on_policy = {"old_logprobs": logprobs, "ref_logprobs": logprobs}
    yield _case(draw, "the first update", logprobs, mask, **on_policy)
    yield _case(draw, "another clip", logprobs, mask, clip=0.05)
    yield _case(draw, "a strong leash", logprobs, mask, beta=1.5)
    yield _case(draw, "no leash", logprobs, mask, beta=0.0)
    per_token = draw.rewards(rows * tokens).reshape(rows, tokens)
    yield _case(draw, "an advantage for every token", logprobs, mask, advantages=per_token)
    square, ends = draw.logprobs(3, 3), mask_of(torch.tensor([3, 1, 2]), 3)
    blamed = -draw.rewards(3).abs()
    yield _case(draw, "a padded square, all blamed", square, ends, advantages=blamed)
    yield _case(draw, "no advantage", logprobs, mask, advantages=torch.zeros(rows).double())
    # Always the same: a second bound on the ratio or on the advantage shows in each of them.
    for ratio, advantage in ((20, -1.0), (40, -0.5), (15, -2.0)):
        label = f"ratio {ratio}, advantage {advantage:g}"
        yield _worked(label, 0.5, 0.5, advantage, old_logprobs=tensor([[0.5 / ratio]]).log())
    one_right = torch.full((8,), -0.3535, dtype=torch.float64)
    one_right[draw.integer(0, 7)] = 2.4744  # (1 − 1/8) / std
    logprobs, mask = draw.logprobs(8, 3), torch.ones(8, 3) > 0
    yield _case(draw, "one right of eight", logprobs, mask, advantages=one_right)
    yield _case(draw, "one wrong of eight", logprobs, mask, advantages=-one_right)


def _columns(advantages: Tensor) -> Tensor:
    return advantages.detach()[:, None] if advantages.dim() == 1 else advantages.detach()


def by_loop(logprobs, old_logprobs, ref_logprobs, advantages, mask, clip=0.2, beta=0.04):
    total = logprobs.new_zeros(())
    for i in range(len(logprobs)):
        row, length = logprobs.new_zeros(()), int(mask[i].sum())
        for t in range(length):
            a = float(advantages[i] if advantages.dim() == 1 else advantages[i, t])
            ratio = (logprobs[i, t] - float(old_logprobs[i, t])).exp()
            objective = torch.min(a * ratio, a * ratio.clamp(1 - clip, 1 + clip))
            x = float(ref_logprobs[i, t]) - logprobs[i, t]
            row = row + objective - beta * (x.exp() - 1 - x)
        total = total - row / max(length, 1)
    return total / len(logprobs)


def by_cases(logprobs, old_logprobs, ref_logprobs, advantages, mask, clip=0.2, beta=0.04):
    """The clip as a question: does the gradient flow?"""
    real = mask.to(logprobs.dtype)
    ratio, a = torch.exp(logprobs - old_logprobs.detach()), _columns(advantages)
    objective = torch.where(a >= 0, ratio.clamp(max=1 + clip) * a, ratio.clamp(min=1 - clip) * a)
    x = torch.exp(ref_logprobs.detach() - logprobs)
    kl = x - x.log() - 1
    rows = ((objective - beta * kl) * real).sum(-1) / real.sum(-1).clamp(min=1)
    return -rows.mean()


def line_by_line(logprobs, old_logprobs, ref_logprobs, advantages, mask, clip=0.2, beta=0.04):
    a = advantages.detach()
    if a.dim() == 1:
        a = a[:, None]
    old = old_logprobs.detach()
    ratio = (logprobs - old).exp()
    clipped = ratio.clamp(1 - clip, 1 + clip)
    ref = ref_logprobs.detach()
    x = ref - logprobs
    kl = x.exp() - 1 - x
    penalty = beta * kl
    objective = torch.minimum(ratio * a, clipped * a)
    per_token = objective - penalty
    rows = (per_token * mask).sum(1) / mask.sum(1).clamp(min=1)
    return -rows.mean()


sketch = Sketch(line_by_line, masked_mean)
alternatives = (by_loop, by_cases)
