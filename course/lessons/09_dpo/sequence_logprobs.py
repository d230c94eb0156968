"""Log-probs of whole completions."""

from collections.abc import Iterator

import torch

from rlcourse.checks.declaring import Case, CaseSampler, Sketch, tensor


def cases(draw: CaseSampler) -> Iterator[Case]:
    worked = tensor([[-0.5, -1.0, -0.25], [-2.0, -3.0, -9.0]])
    padded = torch.tensor([[True, True, True], [True, True, False]])
    yield Case("worked: two completions", {"logprobs": worked, "mask": padded})
    for label, logprobs, mask in draw.batches():
        yield Case(label, {"logprobs": logprobs, "mask": mask})
    long = draw.logprobs(2, 900)
    yield Case("900 tokens", {"logprobs": long, "mask": torch.ones(2, 900) > 0})


def _by_matmul(logprobs, mask):
    return (logprobs.unsqueeze(1) @ mask.to(logprobs.dtype).unsqueeze(2)).flatten()


def _by_loop(logprobs, mask):
    rows = [row[real.bool()].sum() for row, real in zip(logprobs, mask, strict=True)]
    return torch.stack(rows)


def line_by_line(logprobs, mask):
    real = mask.to(logprobs.dtype)
    kept = logprobs * real
    total = kept.sum(1)
    return total


def without_end(real):
    return real * (torch.arange(real.shape[1]) < real.sum(1, keepdim=True) - 1)


sketch = Sketch(line_by_line)
alternatives = (_by_matmul, _by_loop)
