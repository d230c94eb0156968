"""DAPO's loss: room upward, and all tokens alike."""

from collections.abc import Iterator

import torch

from rlcourse.algorithms.beyond_grpo import aggregate, dapo_loss
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
)


def _cases(draw: CaseSampler) -> Iterator[Case]:
    yield from batches(draw)
    for ratio, advantage in ((1.24, 1.0), (1.5, 1.0), (1.5, -1.0), (0.76, -1.0)):
        yield one_token(f"worked: ratio {ratio}, advantage {advantage:+.0f}", ratio, advantage)
    yield one_token("worked: a ratio of 1.5, room to 1.8", 1.5, 1.0, clip_high=0.8)
    room = {"clip_low": 0.1, "clip_high": 0.9}
    yield one_token("worked: a ratio of 0.6 in a band from 0.9 to 1.9", 0.6, -1.0, **room)
    rows, tokens = draw.shape()
    for label, low, high in (
        ("a narrow band", 0.05, 0.1),
        ("much room upward", 0.1, 0.9),
        ("more room downward", 0.4, 0.1),
    ):
        logprobs, mask = draw.logprobs(rows, tokens), draw.mask(rows, tokens)
        yield case_of(draw, label, logprobs, mask, clip_low=low, clip_high=high)
    logprobs, mask = draw.logprobs(6, 9), draw.mask(6, 9)
    yield case_of(draw, "only clip_high is given", logprobs, mask, clip_high=0.5)
    yield case_of(draw, "only clip_low is given", logprobs, mask, clip_low=0.05)
    per_token = draw.rewards(54).reshape(6, 9)
    yield case_of(draw, "an advantage for every token", logprobs, mask, advantages=per_token)


def by_loop(logprobs, old_logprobs, advantages, mask, clip_low=0.2, clip_high=0.28):
    terms = []
    for i, t in mask.bool().nonzero().tolist():
        a = float(advantages[i] if advantages.dim() == 1 else advantages[i, t])
        ratio = (logprobs[i, t] - float(old_logprobs[i, t])).exp()
        terms.append(-torch.min(a * ratio, a * ratio.clamp(1 - clip_low, 1 + clip_high)))
    return torch.stack(terms).mean() if terms else (0 * logprobs).sum()


def by_cases(logprobs, old_logprobs, advantages, mask, clip_low=0.2, clip_high=0.28):
    """In float64, with the side of the band chosen by the sign of the advantage."""
    ratio = (logprobs.double() - old_logprobs.detach().double()).exp()
    a = columns(advantages.detach()).double()
    clipped = torch.where(a > 0, ratio.clamp(max=1 + clip_high), ratio.clamp(min=1 - clip_low))
    total = torch.where(mask.bool(), -a * clipped, 0.0).sum()
    return (total / mask.sum().clamp(min=1)).to(logprobs.dtype)


def line_by_line(logprobs, old_logprobs, advantages, mask, clip_low=0.2, clip_high=0.28):
    a = advantages.detach()
    if a.dim() == 1:
        a = a[:, None]
    old = old_logprobs.detach()
    ratio = (logprobs - old).exp()
    clipped = ratio.clamp(1 - clip_low, 1 + clip_high)
    objective = torch.minimum(ratio * a, clipped * a)
    loss = (objective * mask).sum() / mask.sum().clamp(min=1)
    return -loss


_sketch = Sketch(line_by_line, aggregate)
_edit = _sketch.edit
_AVERAGE = "(objective * mask).sum() / mask.sum().clamp(min=1)"


EXERCISE = Exercise(
    reference=dapo_loss,
    lesson="07_beyond_grpo",
    section="Clip higher",
    points=3,
    difficulty=2,
    minutes=10,
    differentiable=("logprobs",),
    constants=("old_logprobs", "advantages"),
    cases=_cases,
    mistakes=(
        Mistake(
            "a band of ± clip_low",
            _edit("the clip: its band", "1 + clip_high", "1 + clip_low"),
            "The room upward is the point: the band ends at 1 + clip_high.",
        ),
        Mistake(
            "a band of ± clip_high",
            _edit("the clip: its band", "1 - clip_low", "1 - clip_high"),
            "Downward the band keeps PPO's width: it begins at 1 − clip_low.",
        ),
        Mistake(
            "clip_low and clip_high exchanged",
            _edit(
                "the clip: its band", "1 - clip_low, 1 + clip_high", "1 - clip_high, 1 + clip_low"
            ),
            "[1 − clip_low, 1 + clip_high]: the wider side is up.",
        ),
        Mistake(
            "the band [0.8, 1.28] whatever the arguments say",
            _edit("the clip: its band", "1 - clip_low, 1 + clip_high", "0.8, 1.28"),
            "Use the arguments, not their defaults.",
        ),
        Mistake(
            "a ratio clipped to [clip_low, clip_high]",
            _edit("the clip: its band", "1 - clip_low, 1 + clip_high", "clip_low, clip_high"),
            "The band lies around 1: from 1 − clip_low to 1 + clip_high.",
        ),
        Mistake(
            "a band that ends at clip_high",
            _edit("the clip: its band", "1 + clip_high", "clip_high"),
            "The band lies around 1: from 1 − clip_low to 1 + clip_high.",
        ),
        Mistake(
            "a band for the log-ratio",
            _edit(
                "the clip: its band",
                "ratio.clamp(1 - clip_low, 1 + clip_high)",
                "ratio.log().clamp(-clip_low, clip_high).exp()",
            ),
            "The ratio itself is clipped; log(1 + ε) is not ε.",
        ),
        Mistake(
            "GRPO's average: the mean of each completion, then of these",
            _edit("the average", _AVERAGE, 'aggregate(objective, mask, "sequence")'),
            "DAPO treats all tokens of the batch alike, so that long completions count for what "
            "they are.",
        ),
        Mistake(
            "a mean over all N·T positions, padding included",
            _edit("the average", _AVERAGE, "(objective * mask).mean()"),
            "Divide by the number of real tokens.",
        ),
        Mistake(
            "a mean in which padding takes part",
            _edit("the average", _AVERAGE, "objective.mean()"),
            "What stands after the end was never said: only entries with mask 1 enter.",
        ),
        Mistake(
            "a sum over tokens, divided by the number of completions",
            _edit("the average", _AVERAGE, "(objective * mask).sum() / len(mask)"),
            "DAPO divides by the number of real tokens in the batch.",
        ),
        Mistake(
            "a mean that is 0/0 where the whole batch is empty",
            _edit("a batch without tokens", ".clamp(min=1)", ""),
            "Without any token the loss is 0: `masked_mean` knows.",
            telling=1,
        ),
        *of_the_clip(_sketch),
    ),
    alternatives=(by_loop, by_cases, line_by_line),
    hints=(
        "Two things differ from `dr_grpo_loss`: the upper edge of the band, and the average.",
        "`clamp` takes both edges: 1 − clip_low and 1 + clip_high. The average is over all real "
        "tokens.",
        "The end of it:\n\n"
        "    clipped = ratio.clamp(..., ...)\n"
        "    objective = torch.minimum(ratio * advantages, clipped * advantages)\n"
        '    return -aggregate(objective, mask, "...")',
    ),
)
