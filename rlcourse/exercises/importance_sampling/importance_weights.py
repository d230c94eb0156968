"""How much likelier a sample is under the new policy than under the one that drew it."""

from collections.abc import Iterator
from dataclasses import replace

import torch
from torch import Tensor

from rlcourse.algorithms.importance_sampling import importance_weights
from rlcourse.checks.calling import Case
from rlcourse.checks.cases import CaseSampler, tensor
from rlcourse.checks.exercise import Exercise
from rlcourse.exercises.importance_sampling.importance_weights_mistakes import MISTAKES, strict


def _cases(draw: CaseSampler) -> Iterator[Case]:
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


def _by_loop(logprobs, old_logprobs, mask, level="token"):
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


def _by_where(logprobs, old_logprobs, mask, level="token"):
    kept = mask > 0
    log_ratio = torch.where(kept, logprobs - old_logprobs.detach(), 0.0)
    ratio = torch.where(kept, log_ratio.exp(), 0.0)
    if level == "token":
        return ratio
    product = torch.where(kept, ratio, 1.0).prod(dim=-1)  # ratios near 1 do not underflow
    return torch.where(kept.any(dim=-1), product, 0.0)


EXERCISE = Exercise(
    reference=importance_weights,
    lesson="04_importance_sampling",
    section="The ratio of a token, and of a completion",
    points=3,
    difficulty=2,
    minutes=8,
    differentiable=("logprobs",),
    constants=("old_logprobs",),
    cases=_cases,
    mistakes=MISTAKES,
    alternatives=(strict(_by_loop), strict(_by_where)),
    hints=(
        "A ratio of probabilities is exp of a difference of log-probs. What must padding weigh, "
        "and what does exp make of a masked 0?",
        "Log-ratio first, 0 on padding. For tokens exp of it, and 0 on padding again. For "
        "completions sum it over the tokens, then exp, and 0 where the row is empty.",
        "With the reference's steps:\n\n"
        "    log_ratio = (logprobs - old_logprobs.detach()).masked_fill(~mask.bool(), 0)\n"
        '    if level == "token":\n'
        "        return log_ratio.exp().masked_fill(..., 0)\n"
        '    if level == "sequence":\n'
        "        return log_ratio.sum(dim=1).exp().masked_fill(~mask.bool().any(dim=1), 0)\n"
        '    raise ValueError("...")',
    ),
)
