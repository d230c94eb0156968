"""What a token counts for that another policy has written."""

from collections.abc import Iterator
from dataclasses import replace

import torch
from torch import Tensor

from rlcourse.checks.declaring import Case, CaseSampler, Sketch, tensor
from rlcourse.courses.modules import beside

_batches = beside(__file__, "batches.py")
batches = _batches.batches


def cases(draw: CaseSampler) -> Iterator[Case]:
    def case(label: str, trainer: Tensor, sampler: Tensor, mask: Tensor, **given) -> Case:
        arguments = {"trainer_logprobs": trainer, "sampler_logprobs": sampler, "mask": mask}
        return Case(label, arguments | given)

    trainer, sampler = tensor([[0.6, 0.3, 0.1]]).log(), tensor([[0.1, 0.3, 0.6]]).log()
    full = torch.ones(1, 3) > 0
    for mode in ("truncate", "mask"):
        yield case(f"worked: weights 6, 1 and 1/6, {mode}", trainer, sampler, full, mode=mode)
    for label, logprobs, mask in batches(draw):
        sampled = draw.near(logprobs, 1.0)
        for mode in ("truncate", "mask"):
            yield case(f"{label}, {mode}", logprobs, sampled, mask, cap=1.5, mode=mode)
    rows, tokens = draw.shape()
    logprobs, mask = draw.logprobs(rows, tokens), draw.mask(rows, tokens)
    yield case("neither cap nor mode given", logprobs, draw.near(logprobs, 1.5), mask)
    yield case("the same policy", logprobs, logprobs.clone(), mask, mode="mask", cap=1.0)
    wide = 3 * draw.normal(4, 5)
    for cap in (1.0, 8.0):
        for mode in ("truncate", "mask"):
            old = draw.logprobs(4, 5) - 12  # or some of `old + wide` would be above 0
            label = f"far apart, cap {cap:g}, {mode}"
            yield case(label, old + wide, old, torch.ones(4, 5) > 0, cap=cap, mode=mode)
    mask = draw.mask(2, 3)
    rare = draw.logprobs(2, 3).masked_fill(~mask, -200).float()
    for mode in ("truncate", "mask"):
        label = f"padding of log-prob −200, float32, {mode}"
        yield case(label, draw.logprobs(2, 3).float(), rare, mask, mode=mode)
    unknown = case("a mode that does not exist", trainer, sampler, full, mode="clip")
    yield replace(unknown, raises=True)


def by_loop(trainer_logprobs, sampler_logprobs, mask, cap=2.0, mode="truncate"):
    if mode not in ("truncate", "mask"):
        raise ValueError(f"no such mode: {mode}")
    weights = torch.zeros_like(trainer_logprobs)
    for i, t in mask.bool().nonzero().tolist():
        ratio = (trainer_logprobs[i, t].detach() - sampler_logprobs[i, t].detach()).exp()
        if ratio <= cap:
            weights[i, t] = ratio
        elif mode == "truncate":
            weights[i, t] = cap
    return weights


def line_by_line(trainer_logprobs, sampler_logprobs, mask, cap=2.0, mode="truncate"):
    if mode not in ("truncate", "mask"):
        raise ValueError(mode)
    kept = mask.bool()
    log_ratio = (trainer_logprobs.detach() - sampler_logprobs.detach()).masked_fill(~kept, 0)
    w = log_ratio.exp()
    truncated = w.clamp(max=cap)
    masked = torch.where(w > cap, 0, w)
    w = truncated if mode == "truncate" else masked
    return w.masked_fill(~kept, 0)


sketch = Sketch(line_by_line)
alternatives = (by_loop,)
