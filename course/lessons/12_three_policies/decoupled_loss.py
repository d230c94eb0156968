"""PPO's clip where sampler, old policy and trainer are three."""

from collections.abc import Iterator

import torch
from torch import Tensor

from rlcourse.algorithms.policies import masked_mean
from rlcourse.checks.declaring import Case, CaseSampler, Sketch, tensor
from rlcourse.courses.modules import beside

columns = beside(__file__, "../05_ppo/clipped_losses.py").columns
_batches = beside(__file__, "batches.py")
batches = _batches.batches
mean = _batches.mean
weight = _batches.weight


def cases(draw: CaseSampler) -> Iterator[Case]:
    def case(label: str, logprobs: Tensor, mask: Tensor, **given) -> Case:
        old = draw.near(logprobs, 0.4)
        arguments = {
            "logprobs": logprobs,
            "old_logprobs": old,
            "sampler_logprobs": draw.near(old, 0.7),
            "advantages": draw.rewards(len(logprobs), logprobs.dtype),
            "mask": mask,
        }
        return Case(label, arguments | given)

    for label, logprobs, mask in batches(draw):
        yield case(label, logprobs, mask)
    old, one = tensor([[-4.0]]), torch.ones(1, 1) > 0
    worked = (1.5, 1.0, 0.5), (0.5, -1.0, 1.5), (20.0, -1.0, 4.0), (5.0, 1.0, 0.5)
    for ratio, advantage, weighs in worked:
        yield case(
            f"worked: ratio {ratio:g}, advantage {advantage:+.0f}, weight {weighs:g}",
            old + tensor([[ratio]]).log(),
            one,
            old_logprobs=old,
            sampler_logprobs=old - tensor([[weighs]]).log(),
            advantages=tensor([advantage]),
        )
    rows, tokens = draw.shape()
    logprobs, mask = draw.logprobs(rows, tokens), draw.mask(rows, tokens)
    for label, given in (
        ("a cap of 1", {"cap": 1.0}),
        ("a cap of 1.2", {"cap": 1.2}),
        ("a cap of 1.2 and a narrow band", {"cap": 1.2, "clip": 0.05}),
        ("a high cap", {"cap": 50.0}),
        ("a narrow band", {"clip": 0.05}),
        ("a wide band", {"clip": 0.6}),
    ):
        yield case(label, draw.logprobs(rows, tokens), draw.mask(rows, tokens), **given)
    old = draw.near(logprobs, 0.4)
    yield case("the sampler is the old policy", logprobs, mask, old_logprobs=old,
               sampler_logprobs=old.clone())  # fmt: skip
    yield case("the first update", logprobs, mask, old_logprobs=logprobs.clone())
    logprobs, mask = draw.logprobs(6, 9), draw.mask(6, 9)
    per_token = draw.rewards(54).reshape(6, 9)
    yield case("an advantage for every token", logprobs, mask, advantages=per_token)


def _clipped(ratio, advantages, clip):
    a = columns(advantages).detach()
    return torch.minimum(ratio * a, ratio.clamp(1 - clip, 1 + clip) * a)


def _ratio(new, old, mask):
    return torch.where(mask.bool(), new - old.detach(), 0).exp()


def by_weighed_advantages(
    logprobs, old_logprobs, sampler_logprobs, advantages, mask, clip=0.2, cap=2.0
):
    """The weight can as well multiply the advantage, since it is never negative."""
    weighed = columns(advantages).detach() * weight(old_logprobs, sampler_logprobs, mask, cap)
    return -mean(_clipped(_ratio(logprobs, old_logprobs, mask), weighed, clip), mask)


def line_by_line(
    logprobs, old_logprobs, sampler_logprobs, advantages, mask, clip=0.2, cap=2.0
):  # fmt: skip
    a = advantages.detach()
    if a.dim() == 1:
        a = a[:, None]
    kept = mask.bool()
    w = (old_logprobs - sampler_logprobs).masked_fill(~kept, 0).exp()
    weights = w.clamp(max=cap).detach()
    old = old_logprobs.detach()
    ratio = (logprobs - old).masked_fill(~kept, 0).exp()
    clipped = ratio.clamp(1 - clip, 1 + clip)
    objective = torch.minimum(ratio * a, clipped * a)
    average = masked_mean(weights * objective, mask)
    return -average


sketch = Sketch(line_by_line)
alternatives = (by_weighed_advantages,)
