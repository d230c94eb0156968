"""Dr. GRPO's loss: the clip, summed, and divided by a constant."""

from collections.abc import Iterator

import torch

from rlcourse.algorithms.beyond_grpo import aggregate, dr_grpo_loss
from rlcourse.checks.calling import Case
from rlcourse.checks.cases import CaseSampler
from rlcourse.checks.exercise import Exercise, Mistake
from rlcourse.checks.sketch import Sketch
from rlcourse.exercises.ppo.clipped_loss_mistakes import (
    batches,
    case_of,
    columns,
    of_the_clip,
    one_token,
    other_bands,
)


def _cases(draw: CaseSampler) -> Iterator[Case]:
    limit = draw.integer(13, 20)  # longer than any batch drawn here
    yield from batches(draw, max_tokens=limit)
    for ratio, advantage in ((1.5, 1.0), (1.5, -1.0), (0.556, -1.0)):
        label = f"worked: ratio {ratio}, advantage {advantage:+.0f}"
        yield one_token(label, ratio, advantage, max_tokens=4)
    yield from other_bands(max_tokens=4)
    rows, tokens = draw.shape()
    logprobs, mask = draw.logprobs(rows, tokens), draw.mask(rows, tokens)
    yield case_of(draw, "another clip", logprobs, mask, max_tokens=limit, clip=0.05)
    yield case_of(draw, "max_tokens is T", logprobs, mask, max_tokens=tokens)
    per_token = draw.rewards(rows * tokens).reshape(rows, tokens)
    arguments = {"max_tokens": limit, "advantages": per_token}
    yield case_of(draw, "an advantage for every token", logprobs, mask, **arguments)


def by_loop(logprobs, old_logprobs, advantages, mask, max_tokens, clip=0.2):
    total = logprobs.new_zeros(())
    for i, t in mask.bool().nonzero().tolist():
        a = float(advantages[i] if advantages.dim() == 1 else advantages[i, t])
        ratio = (logprobs[i, t] - float(old_logprobs[i, t])).exp()
        total = total - torch.min(a * ratio, a * ratio.clamp(1 - clip, 1 + clip))
    return total / (max_tokens * len(mask))


def by_cases(logprobs, old_logprobs, advantages, mask, max_tokens, clip=0.2):
    """In float64, with the side of the band chosen by the sign of the advantage."""
    ratio = (logprobs.double() - old_logprobs.detach().double()).exp()
    a = columns(advantages.detach()).double()
    clipped = torch.where(a > 0, ratio.clamp(max=1 + clip), ratio.clamp(min=1 - clip))
    rows = torch.where(mask.bool(), -a * clipped, 0.0).sum(dim=1) / max_tokens
    return rows.mean().to(logprobs.dtype)


def line_by_line(logprobs, old_logprobs, advantages, mask, max_tokens, clip=0.2):
    a = advantages.detach()
    if a.dim() == 1:
        a = a[:, None]
    old = old_logprobs.detach()
    ratio = (logprobs - old).exp()
    clipped = ratio.clamp(1 - clip, 1 + clip)
    objective = torch.minimum(ratio * a, clipped * a)
    loss = (objective * mask).sum() / (len(mask) * max_tokens)
    return -loss


def divided_by_std(advantages):
    return advantages / (advantages.std(correction=min(1, len(advantages) - 1)) + 1e-4)


_sketch = Sketch(line_by_line, aggregate, divided_by_std)
_edit = _sketch.edit
_AVERAGE = "(objective * mask).sum() / (len(mask) * max_tokens)"


EXERCISE = Exercise(
    reference=dr_grpo_loss,
    lesson="07_beyond_grpo",
    section="A constant",
    points=3,
    difficulty=2,
    minutes=10,
    differentiable=("logprobs",),
    constants=("old_logprobs", "advantages"),
    cases=_cases,
    mistakes=(
        Mistake(
            "GRPO's average: the mean of each completion, then of these",
            _edit("the average", _AVERAGE, 'aggregate(objective, mask, "sequence")'),
            "The division by the completion's own length is what Dr. GRPO removes.",
        ),
        Mistake(
            "a mean over all real tokens of the batch",
            _edit("the average", _AVERAGE, 'aggregate(objective, mask, "token")'),
            "That is DAPO's average; Dr. GRPO divides by N · max_tokens, whatever was sampled.",
        ),
        Mistake(
            "a division by the padded length T in place of max_tokens",
            _edit("the average", _AVERAGE, "(objective * mask).mean()"),
            "T is the length of the longest completion of this batch, which is no constant.",
        ),
        Mistake(
            "a division by max_tokens without the mean over completions",
            _edit("the average", "len(mask) * max_tokens", "max_tokens"),
            "Divide by N as well, or twice the batch is twice the step.",
        ),
        Mistake(
            "a sum over each completion, without a division by max_tokens",
            _edit("the average", "len(mask) * max_tokens", "len(mask)"),
            "The constant N · max_tokens keeps the loss comparable when the limit changes.",
        ),
        Mistake(
            "a sum in which padding takes part",
            _edit("the padding", "objective * mask", "objective"),
            "What stands after the end was never said: only entries with mask 1 enter the sum.",
        ),
        Mistake(
            "a sum in which padding takes part with a ratio of 1",
            _edit(
                "the padding",
                "(logprobs - old)",
                "((logprobs - old) * mask)",
                "objective * mask",
                "objective",
            ),
            "A log-ratio of 0 on padding is a ratio of 1, and 1 · A enters the sum: leave padding "
            "out of the *average*, with the mask.",
        ),
        Mistake(
            "each row's mean over max_tokens",
            _edit("the average", _AVERAGE, 'aggregate(objective, mask, "sequence") / max_tokens'),
            "Dividing by the row's own length is the very thing that Dr. GRPO leaves out.",
        ),
        Mistake(
            "a mean over the completions that are not empty",
            _edit("empty completions", "len(mask)", "mask.bool().any(1).sum().clamp(min=1)"),
            "An empty completion adds 0 and is counted all the same.",
            telling=1,
        ),
        Mistake(
            "advantages that are divided by their standard deviation inside the loss",
            _edit("the advantages: their scale", "if a.dim", "a = divided_by_std(a)\n    if a.dim"),
            "The loss takes advantages as they come; and Dr. GRPO's are not divided by anything.",
        ),
        Mistake(
            "an ε of 0.2 whatever the argument says",
            _edit("the clip: its band", "1 - clip, 1 + clip", "0.8, 1.2"),
            "Use the argument `clip`, not its default.",
            telling=1,
        ),
        Mistake(
            "log-probs in place of the ratio",
            _edit(
                "the ratio: what it is made of",
                "torch.minimum(ratio * a, clipped * a)",
                "logprobs * a",
            ),
            "That is REINFORCE: right at the first update, uncorrected at every later one.",
        ),
        *of_the_clip(_sketch),
    ),
    alternatives=(by_loop, by_cases, line_by_line),
    hints=(
        "Per token it is lesson 05's clipped objective. Only the average is new, and you have "
        "just written it.",
        "Ratio from `importance_weights`, advantages detached and as a column, the min of the "
        'two products, then `aggregate(…, "constant", max_tokens)`, and the minus.',
        "The end of it:\n\n"
        "    clipped = ratio.clamp(1 - clip, 1 + clip)\n"
        "    objective = torch.minimum(ratio * advantages, ...)\n"
        '    return -aggregate(objective, mask, "constant", ...)',
    ),
)
