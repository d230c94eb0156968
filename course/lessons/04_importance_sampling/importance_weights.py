"""How much likelier a sample is under the new policy than under the one that drew it."""

from collections.abc import Iterator
from dataclasses import replace

import torch
from torch import Tensor

from rlcourse.checks.declaring import Case, CaseSampler, Sketch, tensor


def cases(draw: CaseSampler) -> Iterator[Case]:
    def case(label: str, logprobs: Tensor, old: Tensor, mask: Tensor, level: str | None) -> Case:
        arguments = {"logprobs": logprobs, "old_logprobs": old, "mask": mask}
        return Case(label, arguments | ({"level": level} if level else {}))

    worked = tensor([[0.7, 0.1]]).log(), tensor([[0.5, 0.3]]).log(), torch.ones(1, 2) > 0
    yield case("worked: 0.7 for 0.5 and 0.1 for 0.3", *worked, "token")
    yield case("worked: the same, as one completion", *worked, "sequence")
    for label, logprobs, mask in draw.batches():
        old = draw.logprobs(*logprobs.shape).to(logprobs.dtype)
        for level in ("token", "sequence"):
            yield case(f"{label}, {level}", logprobs, old, mask, level)
    rows, tokens = draw.shape()
    mask = draw.mask(rows, tokens)
    logprobs = draw.logprobs(rows, tokens)
    yield case("no level given", logprobs, draw.logprobs(rows, tokens), mask, None)
    yield case("the same policy", logprobs, logprobs.clone(), mask, "token")
    # 400 tokens at e^-3 are 10^-521: a product of probabilities is 0, a sum of logs is not.
    long = -3 + 0.1 * draw.normal(2, 400)
    near = long + 0.01 * draw.normal(2, 400)
    rare = (draw.logprobs(2, 3) - 110).float()
    likelier = (rare + 0.3 * draw.normal(2, 3)).float()
    for level in ("token", "sequence"):
        label = f"tokens of probability e⁻¹¹⁰, float32, {level}"
        yield case(label, likelier, rare, torch.ones(2, 3) > 0, level)
    # Bounds of 30 and less show in the first; in the second only on the sum of a completion.
    apart = draw.logprobs(2, 2) - 40
    far = 35 * tensor([[1.0, -1.0], [0.9, -0.9]])
    yield case("log-ratios of ±35, token", apart + far, apart, torch.ones(2, 2) > 0, "token")
    apart = draw.logprobs(2, 14) - 5
    far = 2.5 * tensor([[1.0], [-1.0]]).expand(2, 14)
    label = "log-ratios of ±35 in all, sequence"
    yield case(label, apart + far, apart, torch.ones(2, 14) > 0, "sequence")
    yield case("400 tokens", near, long, torch.ones(2, 400) > 0, "sequence")
    mask = draw.mask(2, 3)
    rare = draw.logprobs(2, 3).masked_fill(~mask, -200).float()
    for level in ("token", "sequence"):
        label = f"padding of log-prob −200, float32, {level}"
        yield case(label, draw.logprobs(2, 3).float(), rare, mask, level)
    unknown = case("a level that does not exist", *worked, "word")
    yield replace(unknown, raises=True)


def by_loop(logprobs, old_logprobs, mask, level="token"):
    if level not in ("token", "sequence"):
        raise ValueError(level)
    old, rows = old_logprobs.detach(), []
    for new_row, old_row, kept in zip(logprobs, old, mask, strict=True):
        kept = kept.bool()
        log_ratio = new_row[kept] - old_row[kept]
        if level == "sequence":
            rows.append(log_ratio.sum().exp() if kept.any() else new_row.new_zeros(()))
        else:
            padding = new_row.new_zeros(len(kept) - len(log_ratio))
            rows.append(torch.cat([log_ratio.exp(), padding]))  # right-padded
    return torch.stack(rows)


def by_where(logprobs, old_logprobs, mask, level="token"):
    if level not in ("token", "sequence"):
        raise ValueError(level)
    kept = mask > 0
    log_ratio = torch.where(kept, logprobs - old_logprobs.detach(), 0.0)
    ratio = torch.where(kept, log_ratio.exp(), 0.0)
    if level == "token":
        return ratio
    product = torch.where(kept, ratio, 1.0).prod(dim=-1)  # ratios near 1 do not underflow
    return torch.where(kept.any(dim=-1), product, 0.0)


def line_by_line(logprobs, old_logprobs, mask, level="token"):
    if level not in ("token", "sequence"):
        raise ValueError(level)
    kept = mask.bool()
    old = old_logprobs.detach()
    log_ratio = (logprobs - old).masked_fill(~kept, 0)
    if level == "sequence":
        weights = log_ratio.sum(1).exp().masked_fill(~kept.any(1), 0)
    else:
        weights = log_ratio.exp().masked_fill(~kept, 0)
    return weights


def product(logprobs, kept):
    """The probability of each completion, multiplied up."""
    return logprobs.exp().masked_fill(~kept, 1).prod(1)


def quotient(logprobs, old, kept):
    return logprobs.masked_fill(~kept, 0).exp() / old.masked_fill(~kept, 0).exp()


def _by_quotient(logprobs, old_logprobs, mask, level="token"):
    if level not in ("token", "sequence"):
        raise ValueError(level)
    kept = mask.bool()
    new, old = logprobs.masked_fill(~kept, 0), old_logprobs.detach().masked_fill(~kept, 0)
    if level == "sequence":
        return new.sum(1).exp() / old.sum(1).exp() * kept.any(1)
    return new.exp() / old.exp() * kept


sketch = Sketch(line_by_line, product, quotient)
alternatives = (by_loop, by_where)
