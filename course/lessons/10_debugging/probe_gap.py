"""Sampler against trainer: what is left should be rounding."""

from collections.abc import Iterator

import torch

from rlcourse.checks.declaring import Case, CaseSampler, tensor


def cases(draw: CaseSampler) -> Iterator[Case]:
    worked = {
        "logprobs": tensor([[-0.5, -1.0, -2.0], [-0.25, -0.75, 0.0]]),
        "old_logprobs": tensor([[-0.5, -1.5, -1.0], [-0.25, -0.5, 0.0]]),
        "mask": torch.tensor([[1, 1, 1], [1, 1, 0]]).bool(),
    }
    yield Case("worked: three tokens of five differ", worked)
    for label, logprobs, mask in draw.batches():
        old = draw.near(logprobs, 0.3)
        yield Case(label, {"logprobs": logprobs, "old_logprobs": old, "mask": mask})
    logprobs, mask = draw.logprobs(3, 5), draw.mask(3, 5)
    off = torch.where(mask, logprobs, logprobs - 4)
    yield Case("a gap on padding alone", {"logprobs": logprobs, "old_logprobs": off, "mask": mask})
    once = logprobs.clone()
    once[0, 0] -= 2.5
    yield Case("one token alone", {"logprobs": logprobs, "old_logprobs": once, "mask": mask})
    below = logprobs - 0.125
    yield Case(
        "the sampler is surer everywhere",
        {"logprobs": below, "old_logprobs": logprobs, "mask": mask},
    )


def _of(distance, mean=None, largest=None):
    """The probe with another distance, another mean, or another maximum."""

    def probe(logprobs, old_logprobs, mask):
        gap = distance(logprobs, old_logprobs)
        real = gap.masked_fill(~mask.bool(), 0)
        usual = real.sum() / mask.sum().clamp(min=1)
        return (
            mean(gap, real, mask) if mean else usual,
            largest(gap, real, mask) if largest else real.max(),
        )

    return probe


def _absolute(logprobs, old_logprobs):
    return (logprobs - old_logprobs).abs()


def _by_loop(logprobs, old_logprobs, mask):
    found = [
        abs(new - old)
        for new, old, real in zip(
            logprobs.flatten(), old_logprobs.flatten(), mask.flatten(), strict=True
        )
        if real
    ]
    gaps = torch.stack(found) if found else logprobs.new_zeros(1)
    return gaps.mean(), gaps.max()


def _by_product(logprobs, old_logprobs, mask):
    gap = (old_logprobs - logprobs).abs() * mask
    return gap.sum() / torch.clamp(mask.sum(), min=1), gap.amax()


def _rms(real, mask):
    return (real.square().sum() / mask.sum().clamp(min=1)).sqrt()


alternatives = (_by_loop, _by_product)
