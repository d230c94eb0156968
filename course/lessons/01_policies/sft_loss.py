"""The loss of supervised fine-tuning."""

from collections.abc import Iterator

import torch

from rlcourse.algorithms.policies import masked_mean
from rlcourse.checks.declaring import Case, CaseSampler, Sketch, mask_of, tensor
from rlcourse.courses.modules import beside

_masked_mean = beside(__file__, "masked_mean.py")
WITH_ZERO = _masked_mean.WITH_ZERO
WORKED = _masked_mean.WORKED
WORKED_MASK = _masked_mean.WORKED_MASK


def cases(draw: CaseSampler) -> Iterator[Case]:
    yield Case("worked: two rows", {"logprobs": WORKED, "mask": WORKED_MASK})
    yield Case("a token of log-prob 0", {"logprobs": WITH_ZERO, "mask": WORKED_MASK})
    certain = draw.logprobs(2, 4) * tensor([[1, 0, 1, 1], [0, 1, 1, 0]])
    padded = mask_of(torch.tensor([4, 2]), 4)
    yield Case("tokens of log-prob 0", {"logprobs": certain, "mask": padded})
    ends_certain = tensor([[-1.0, -2.0, 0.0], [-0.5, 0.0, -1.5]])
    padded = mask_of(torch.tensor([3, 1]), 3)
    yield Case("a last token of log-prob 0", {"logprobs": ends_certain, "mask": padded})
    for label, logprobs, mask in draw.batches():
        yield Case(label, {"logprobs": logprobs, "mask": mask})


def _loss_by_loop(logprobs, mask):
    total, count = logprobs.new_zeros(()), 0
    for row, real in zip(logprobs, mask, strict=True):
        for value, one in zip(row, real, strict=True):
            if one:
                total, count = total - value, count + 1
    return total / max(count, 1)


def line_by_line(logprobs, mask):
    real = mask.to(logprobs.dtype)
    total = (logprobs * real).sum()
    mean = total / real.sum().clamp(min=1)
    return -mean


def log_of_mean_probability(logprobs, mask):
    real = logprobs[mask.bool()]
    return real.exp().mean().log() if len(real) else real.sum()


sketch = Sketch(line_by_line, masked_mean, log_of_mean_probability)
alternatives = (_loss_by_loop,)
