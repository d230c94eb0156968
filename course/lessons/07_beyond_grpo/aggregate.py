"""One number from a number per token, in three ways."""

from collections.abc import Iterator
from dataclasses import replace

import torch

from rlcourse.algorithms.policies import masked_mean
from rlcourse.checks.declaring import Case, CaseSampler, Sketch, tensor

WAYS = ("sequence", "token", "constant")


def cases(draw: CaseSampler) -> Iterator[Case]:
    def case(label, per_token, mask, how, max_tokens=None) -> Case:
        arguments = {"per_token": per_token, "mask": mask}
        if how:
            arguments["how"] = how
        if max_tokens:
            arguments["max_tokens"] = max_tokens
        return Case(label, arguments)

    worked = tensor([[1.0, 0, 0, 0], [2, 2, 2, 2]])
    mask = torch.tensor([[1, 0, 0, 0], [1, 1, 1, 1]]) > 0
    for how in WAYS:
        yield case(f"worked: “{how}”", worked * mask, mask, how, 8 if how == "constant" else None)
    for label, logprobs, mask in draw.batches():
        if label in ("one row", "N equals T"):
            continue
        per_token = draw.normal(*logprobs.shape).to(logprobs.dtype)
        for how in WAYS:
            limit = logprobs.shape[1] + draw.integer(1, 9)
            yield case(f"{label}, “{how}”", per_token, mask, how, limit)
    rows, tokens = draw.shape()
    yield case("how is not given", draw.normal(rows, tokens), draw.mask(rows, tokens), None)
    for label, how, limit in (
        ("max_tokens is missing", "constant", None),
        ("a how that is none of the three", "median", None),
        ("a how that is none of the three, and a limit", "median", 12),
    ):
        drawn = case(label, draw.normal(rows, tokens), draw.mask(rows, tokens), how, limit)
        yield replace(drawn, raises=True)


def by_loop(per_token, mask, how="sequence", max_tokens=None):
    total, count, rows = per_token.new_zeros(()), 0, []
    for row, real in zip(per_token, mask, strict=True):
        length = int(real.sum())
        total, count = total + row[:length].sum(), count + length
        rows.append(row[:length].sum() / max(length, 1))
    if how == "sequence":
        return torch.stack(rows).mean()
    if how == "token":
        return total / max(count, 1)
    if how != "constant" or max_tokens is None:
        raise ValueError("none of the three averages")
    return total / (len(rows) * max_tokens)


def line_by_line(per_token, mask, how="sequence", max_tokens=None):
    kept = mask.bool()
    x = per_token * kept
    count = kept.sum(1)
    if how == "sequence":
        average = (x.sum(1) / count.clamp(min=1)).mean()
    elif how == "token":
        average = x.sum() / count.sum().clamp(min=1)
    elif how == "constant":
        average = x.sum() / (len(x) * given(max_tokens))
    else:
        raise ValueError(f"unknown: {how}")
    return average


def given(max_tokens):
    if max_tokens is None:
        raise ValueError("no max_tokens")
    return max_tokens


sketch = Sketch(line_by_line, given, masked_mean)
alternatives = (by_loop,)
