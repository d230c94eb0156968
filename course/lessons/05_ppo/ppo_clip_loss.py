"""PPO's clipped loss: the cases it must survive, and other ways to write it."""

from collections.abc import Iterator

import torch
from torch import Tensor

from rlcourse.checks.declaring import Case, CaseSampler, Sketch, tensor


def _case(draw: CaseSampler, label: str, logprobs: Tensor, mask: Tensor, **given) -> Case:
    """Ratios on both sides of the band and within it; advantages of either sign."""
    arguments = {
        "logprobs": logprobs,
        "old_logprobs": draw.near(logprobs),
        "advantages": draw.rewards(len(logprobs), logprobs.dtype),
        "mask": mask,
    }
    return Case(label, {**arguments, **given})


def _worked(ratio: float, advantage: float) -> Case:
    arguments = {
        "logprobs": tensor([[0.02 * ratio]]).log(),
        "old_logprobs": tensor([[0.02]]).log(),
        "advantages": tensor([advantage]),
        "mask": torch.ones(1, 1) > 0,
    }
    return Case(f"worked: ratio {ratio:g}, advantage {advantage:+g}", arguments)


def _all_kinds() -> Case:
    """Inside, above and below the band, praised and blamed, and a padded token outside it."""
    ratios = tensor([[1.1, 1.5, 0.5, 1.5], [0.9, 1.5, 0.5, 3.0]])
    return Case(
        "every kind of token",
        {
            "logprobs": ratios.log() - 4,
            "old_logprobs": torch.full_like(ratios, -4.0),
            "advantages": tensor([1.0, -2.0]),
            "mask": torch.tensor([[1, 1, 1, 1], [1, 1, 1, 0]]) > 0,
        },
    )


def cases(draw: CaseSampler) -> Iterator[Case]:
    yield _all_kinds()
    for ratio, advantage in ((1.5, 1), (10, 1), (0.5, 1), (0.556, -1), (0.111, -1), (1.5, -1)):
        yield _worked(ratio, advantage)
    yield _worked(1.0, -1)
    # Always the same: a second bound on the ratio or on the advantage shows in each of them.
    for ratio, advantage in ((50, -1), (20, -0.5), (15, -2.5), (1.1, 2.5)):
        yield _worked(ratio, advantage)
    for label, logprobs, mask in draw.batches():
        yield _case(draw, label, logprobs, mask)
    rows, tokens = draw.size(4, 5), draw.size(6, 8)
    logprobs, mask = draw.logprobs(rows, tokens), draw.mask(rows, tokens)
    yield _case(draw, "the first update", logprobs, mask, old_logprobs=logprobs)
    yield _case(draw, "a narrow band", logprobs, mask, clip=0.05)
    yield _case(draw, "a wide band", logprobs, mask, clip=0.6)
    no_room = {"old_logprobs": logprobs, "clip": 0.0}
    yield _case(draw, "ratios of 1 in a band without width", logprobs, mask, **no_room)
    per_token = draw.rewards(rows * tokens).reshape(rows, tokens)
    yield _case(draw, "an advantage for every token", logprobs, mask, advantages=per_token)
    ratios = tensor([[0.5, 0.6, 1.5], [0.5, 1.5, 1.5]])
    some = {"mask": torch.ones(2, 3) > 0, "advantages": tensor([0.0, 1.0])}
    some |= {"logprobs": ratios.log() - 2, "old_logprobs": torch.full_like(ratios, -2.0)}
    yield Case("advantages of 0: a group of equal rewards", some)
    praised = draw.uniform(rows, low=0.3, high=2.0)
    yield _case(draw, "everything praised", logprobs, mask, advantages=praised)
    yield _case(draw, "everything blamed", logprobs, mask, advantages=-praised)
    rare = (logprobs - 120).float()
    yield _case(draw, "tokens of probability e⁻¹²⁰", rare, mask)


def _columns(advantages: Tensor) -> Tensor:
    return advantages.detach()[:, None] if advantages.dim() == 1 else advantages.detach()


def by_loop(logprobs, old_logprobs, advantages, mask, clip=0.2):
    total, stopped, count = logprobs[:0].sum(), 0, int(mask.sum())
    for i in range(len(logprobs)):
        for t in range(logprobs.shape[1]):
            if not mask[i, t]:
                continue
            a = float(advantages[i] if advantages.dim() == 1 else advantages[i, t])
            ratio = (logprobs[i, t] - float(old_logprobs[i, t])).exp()
            bounded = ratio.clamp(max=1 + clip) if a > 0 else ratio.clamp(min=1 - clip)
            stopped += bool(a * bounded != a * ratio)
            total = total + a * bounded
    return -total / max(count, 1), logprobs.new_tensor(stopped / max(count, 1))


def by_loss_terms(logprobs, old_logprobs, advantages, mask, clip=0.2):
    """As many published codes have it: the larger of two losses."""
    real, a = mask.to(logprobs.dtype), _columns(advantages)
    ratio = torch.where(mask.bool(), logprobs - old_logprobs.detach(), 0.0).exp()
    loss, loss_clipped = -a * ratio, -a * ratio.clamp(1 - clip, 1 + clip)
    count = real.sum().clamp(min=1)
    stopped = ((loss_clipped > loss).to(logprobs.dtype) * real).sum() / count
    return (torch.max(loss, loss_clipped) * real).sum() / count, stopped


def by_sign(logprobs, old_logprobs, advantages, mask, clip=0.2):
    """The form without a min: the bound is (1 + ε) A or (1 − ε) A, by the sign of A."""
    weights = mask.double() / mask.double().sum().clamp(min=1)
    a = _columns(advantages).double().expand_as(logprobs)
    ratio = (logprobs.double() - old_logprobs.detach().double()).masked_fill(~mask.bool(), 0).exp()
    bound = torch.where(a >= 0, 1 + clip, 1 - clip) * a
    flows = ratio * a <= bound
    objective = torch.where(flows, ratio * a, bound)
    outcome = -(weights * objective).sum(), (weights * ~flows).sum()
    return tuple(x.to(logprobs.dtype) for x in outcome)


def line_by_line(logprobs, old_logprobs, advantages, mask, clip=0.2):
    a = advantages.detach()
    if a.dim() == 1:
        a = a[:, None]
    old = old_logprobs.detach()
    ratio = (logprobs - old).exp()
    clipped = ratio.clamp(1 - clip, 1 + clip)
    objective = torch.minimum(ratio * a, clipped * a)
    stopped = (clipped * a < ratio * a).to(ratio.dtype)
    count = mask.sum().clamp(min=1)
    loss = -(objective * mask).sum() / count
    share = (stopped * mask).sum() / count
    return loss, share.detach()


def whitened(advantages):
    return (advantages - advantages.mean()) / (advantages.std(correction=0) + 1e-8)


sketch = Sketch(line_by_line, whitened)
alternatives = (by_loop, by_loss_terms, by_sign)
