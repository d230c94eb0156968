"""A reward for every token: the score at the end, and the leash all along."""

from collections.abc import Iterator

import torch
from torch import Tensor

from rlcourse.algorithms.policies import masked_mean
from rlcourse.algorithms.ppo import kl_shaped_rewards
from rlcourse.checks.declaring import Case, CaseSampler, Sketch, tensor


def cases(draw: CaseSampler) -> Iterator[Case]:
    def case(label: str, logprobs: Tensor, mask: Tensor, beta=0.3, **given) -> Case:
        arguments = {
            "scores": draw.rewards(len(logprobs), logprobs.dtype),
            "logprobs": logprobs,
            "ref_logprobs": draw.near(logprobs, 0.6),
            "mask": mask,
            "beta": beta,
        }
        return Case(label, {**arguments, **given})

    rows, tokens = draw.size(3, 4), draw.size(5, 6)
    yield case("different lengths", draw.logprobs(rows, tokens), draw.mask(rows, tokens))
    worked = {
        "scores": tensor([1.0]),
        "logprobs": tensor([[-0.5, -1.0, -0.2, -9.0]]),
        "ref_logprobs": tensor([[-0.7, -0.6, -0.2, -1.0]]),
        "mask": torch.tensor([[1, 1, 1, 0]]) > 0,
        "beta": 0.1,
    }
    yield Case("worked: three tokens and padding", worked)
    for label, logprobs, mask in draw.batches():
        yield case(label, logprobs, mask)
    logprobs, mask = draw.logprobs(rows, tokens), draw.mask(rows, tokens)
    yield case("no leash", logprobs, mask, beta=0.0)
    yield case("a strong leash", logprobs, mask, beta=4.0)
    yield case("the policy is the reference", logprobs, mask, ref_logprobs=logprobs)
    yield case("scores of 0", logprobs, mask, scores=torch.zeros(rows).double())
    short = draw.mask(rows, tokens) & (torch.arange(tokens) < tokens - 1)
    yield case("every row is padded", logprobs, short)


def _is_last(mask: Tensor) -> Tensor:
    real = mask.bool()
    following = torch.cat([real[:, 1:], torch.zeros_like(real[:, :1])], 1)
    return real & ~following


def line_by_line(scores, logprobs, ref_logprobs, mask, beta):
    scores, new, ref = scores.detach(), logprobs.detach(), ref_logprobs.detach()
    real = mask.bool()
    kl = (new - ref).masked_fill(~real, 0)
    penalty = -(beta * kl)
    last = _is_last(mask)
    rewards = penalty + last * scores[:, None]
    return rewards.masked_fill(mask == 0, 0)


def _also_empty_rows(rewards, scores, mask):
    empty = ~mask.bool().any(1, keepdim=True)
    return rewards.masked_fill(mask == 0, 0) + empty * _column(mask, -1) * scores[:, None]


def _column(mask, index):
    where = torch.zeros_like(mask.bool())
    where[:, index] = True
    return where


def _in_place(scores, logprobs, ref_logprobs, mask, beta):
    with torch.no_grad():
        shaped = kl_shaped_rewards(scores, logprobs, ref_logprobs, mask, beta)
        return logprobs.copy_(shaped)


def _by_loop(scores, logprobs, ref_logprobs, mask, beta):
    rewards = torch.zeros_like(logprobs, requires_grad=False)
    for i, length in enumerate(mask.sum(1).long().tolist()):
        for t in range(length):
            rewards[i, t] = -beta * (logprobs[i, t] - ref_logprobs[i, t]).item()
        if length:
            rewards[i, length - 1] += scores[i].item()
    return rewards


def _by_scatter(scores, logprobs, ref_logprobs, mask, beta):
    with torch.no_grad():
        real = mask.to(logprobs.dtype)
        lengths = real.sum(1, keepdim=True).long()
        ends = torch.zeros_like(real).scatter(1, (lengths - 1).clamp(min=0), 1.0) * (lengths > 0)
        return real * (beta * (ref_logprobs - logprobs) + ends * scores.unsqueeze(1))


sketch = Sketch(line_by_line, masked_mean, _is_last, _column, _also_empty_rows)
alternatives = (_by_loop, _by_scatter)
