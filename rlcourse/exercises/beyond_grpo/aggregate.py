"""One number from a number per token, in three ways."""

from collections.abc import Iterator
from dataclasses import replace
from functools import partial

import torch

from rlcourse.algorithms.beyond_grpo import aggregate
from rlcourse.algorithms.policies import masked_mean
from rlcourse.checks.calling import Case
from rlcourse.checks.cases import CaseSampler, tensor
from rlcourse.checks.exercise import Exercise, Mistake
from rlcourse.checks.sketch import Sketch

WAYS = ("sequence", "token", "constant")


def _cases(draw: CaseSampler) -> Iterator[Case]:
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


def by_weights(per_token, mask, how="sequence", max_tokens=None):
    """All three are one weighted sum: what differs is the weight of a token."""
    if how not in WAYS or (how == "constant" and not max_tokens):
        raise ValueError(how)
    real = mask.to(per_token.dtype)
    lengths = real.sum(1, keepdim=True).clamp(min=1)
    divisor = {
        "sequence": len(real) * lengths,
        "token": real.sum().clamp(min=1),
        "constant": len(real) * (max_tokens or 1),
    }[how]
    return torch.einsum("nt,nt->", per_token, real / divisor)


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


_edit = Sketch(line_by_line, given, masked_mean).edit
_ROWS, _MEAN_OF_ROWS = "(x.sum(1) / count.clamp(min=1))", "(x.sum(1) / count.clamp(min=1)).mean()"
_TOKENS, _LIMIT = "x.sum() / count.sum().clamp(min=1)", "(len(x) * given(max_tokens))"
_over_rows = partial(_edit, "“sequence”: over rows", "count.clamp(min=1)).mean()")


EXERCISE = Exercise(
    reference=aggregate,
    lesson="07_beyond_grpo",
    section="Three averages",
    points=3,
    difficulty=2,
    minutes=10,
    differentiable=("per_token",),
    cases=_cases,
    mistakes=(
        Mistake(
            "a mean over the completions that are not empty, for “sequence”",
            _over_rows("count.clamp(min=1)).sum() / kept.any(1).sum().clamp(min=1)"),
            "An empty completion counts as 0, and it counts: divide by N.",
            telling=1,
        ),
        Mistake(
            "a mean in which empty rows are 0/0, for “sequence”",
            _edit("“sequence”: empty rows", "/ count.clamp(min=1)", "/ count"),
            "One NaN spoils the batch: `masked_mean` gives 0 for an empty row.",
            telling=2,
        ),
        Mistake(
            "sums of rows in place of their means, for “sequence”",
            _edit("“sequence”: within rows", _ROWS, "x.sum(1)"),
            "GRPO divides each completion's sum by its own length.",
        ),
        Mistake(
            "a sum over the row means, for “sequence”",
            _over_rows("count.clamp(min=1)).sum()"),
            "Then twice the batch would mean twice the step: take the mean over rows.",
        ),
        Mistake(
            "a division by T in place of each completion's length, for “sequence”",
            _edit("“sequence”: within rows", _ROWS, "x"),
            "T is the length of the batch's longest completion, padding included; GRPO divides "
            "each completion's sum by its own number of tokens.",
        ),
        Mistake(
            "a mean over all N·T positions, for “token”",
            _edit("“token”", _TOKENS, "x.mean()"),
            "Divide by the number of *real* tokens.",
        ),
        Mistake(
            "a division by N, for “token”",
            _edit("“token”", _TOKENS, "x.sum() / len(x)"),
            "DAPO divides by the number of real tokens in the batch, not of completions.",
        ),
        Mistake(
            "a division by the batch's longest T, for “constant”",
            _edit("“constant”", _LIMIT, "x.numel()"),
            "T depends on which completion happens to be longest; the constant is `max_tokens`.",
        ),
        Mistake(
            "a division by the number of completions that are not empty, for “constant”",
            _edit("“constant”", _LIMIT, "(kept.any(1).sum().clamp(min=1) * max_tokens)"),
            "An empty completion adds 0, and it counts: N is the number of rows.",
            telling=2,
        ),
        Mistake(
            "a division by max_tokens alone, for “constant”",
            _edit("“constant”", _LIMIT, "max_tokens"),
            "The mean over completions is still there: divide by N · max_tokens.",
        ),
        Mistake(
            "a division by N alone, for “constant”",
            _edit("“constant”", _LIMIT, "len(x)"),
            "That is REINFORCE's average; Dr. GRPO's constant is N · max_tokens.",
        ),
        Mistake(
            "each row's mean over max_tokens, for “constant”",
            _edit(
                "“constant”",
                "x.sum() / (len(x) * given(max_tokens))",
                "masked_mean(x, kept, dim=1).mean() / max_tokens",
            ),
            "Dividing by the row's length is the very thing that this average avoids.",
        ),
        Mistake(
            "T in place of `max_tokens` where none is given, for “constant”",
            _edit("no limit", "given(max_tokens)", "(max_tokens or x.shape[1])"),
            "T is no constant: without `max_tokens` there is nothing to divide by, and the "
            "function says so (ValueError).",
            telling=1,
        ),
        Mistake(
            "an average where ValueError is asked for, both times",
            _edit(
                "another `how`",
                "given(max_tokens)",
                "(max_tokens or x.shape[1])",
                'raise ValueError(f"unknown: {how}")',
                "average = x.sum() / count.sum().clamp(min=1)",
            ),
            "Another `how`, or “constant” without `max_tokens`, is a slip of the caller: say so, "
            "or a run trains on another loss in silence.",
            telling=2,
        ),
        Mistake(
            "an average for a `how` that is none of the three",
            _edit(
                "another `how`",
                'raise ValueError(f"unknown: {how}")',
                "average = x.sum() / count.sum().clamp(min=1)",
            ),
            "A name that is misspelled must not train something else in silence: ValueError.",
            telling=1,
        ),
        Mistake(
            "padding that takes part",
            _edit("the padding", "mask.bool()", "torch.ones_like(mask.bool())"),
            "Only entries with mask 1 are tokens; the rest neither adds nor counts.",
        ),
        Mistake(
            "“sequence” and “token” exchanged",
            _edit(
                "which is which",
                'how == "sequence"',
                'how == "token"',
                'how == "token"',
                'how == "sequence"',
            ),
            "“sequence” averages within each completion first; “token” treats all tokens of the "
            "batch alike.",
        ),
        Mistake(
            "the mean of row means, whatever `how` says",
            _edit("which is which", 'how == "sequence"', "True"),
            "Three averages, three branches: read `how`.",
        ),
        Mistake(
            "the mean over all tokens, whatever `how` says",
            _edit("which is which", 'how == "sequence"', "False", 'how == "token"', "True"),
            "Three averages, three branches: read `how`.",
        ),
        Mistake(
            "the mean over all N·T positions, whatever `how` says",
            _edit(
                "which is which",
                'how == "sequence"',
                "True",
                _MEAN_OF_ROWS,
                "(per_token * mask).mean()",
            ),
            "That counts padding as tokens, and it is none of the three: read `how`.",
        ),
        Mistake(
            "“token” as the default",
            _edit("the default", 'how="sequence"', 'how="token"'),
            "Where `how` is not given it is “sequence”, as in the signature.",
            telling=1,
        ),
        Mistake(
            "an average without gradient",
            _edit("the gradient", "per_token *", "per_token.detach() *"),
            "Losses go through this function: `per_token` keeps its graph.",
        ),
    ),
    alternatives=(by_loop, by_weights, line_by_line),
    hints=(
        "All three add up the same real tokens. They differ in what they divide by.",
        "`masked_mean(x, mask, dim=1)` gives a mean per row, `masked_mean(x, mask)` one over all "
        "real tokens. For “constant”, sum the real tokens and divide by N · max_tokens.",
        "Three branches:\n\n"
        '    if how == "sequence":\n'
        "        return masked_mean(per_token, mask, dim=...).mean()\n"
        '    if how == "token":\n'
        "        return ...\n"
        "    total = per_token.masked_fill(~mask.bool(), 0).sum()\n"
        "    return total / ...",
    ),
)
