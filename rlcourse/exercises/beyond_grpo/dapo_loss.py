"""DAPO's loss: room upward, and all tokens alike."""

from collections.abc import Iterator

import torch

from rlcourse.algorithms.beyond_grpo import aggregate, dapo_loss
from rlcourse.checks.calling import Case
from rlcourse.checks.cases import CaseSampler
from rlcourse.checks.exercise import Exercise, Mistake
from rlcourse.exercises.beyond_grpo.clipped_loss_mistakes import (
    along_tokens,
    batches,
    case_of,
    columns,
    of_the_clip,
    one_token,
    ratio_of,
    surrogate,
)


def _cases(draw: CaseSampler) -> Iterator[Case]:
    yield from batches(draw)
    for ratio, advantage in ((1.24, 1.0), (1.5, 1.0), (1.5, -1.0), (0.76, -1.0)):
        yield one_token(f"worked: ratio {ratio}, advantage {advantage:+.0f}", ratio, advantage)
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


def _token(per_token, mask):
    return aggregate(per_token, mask, "token")


def _variant(
    ratio=ratio_of, objective=surrogate, average=_token, sign=1.0,
    band=lambda low, high: (low, high),
):  # fmt: skip
    """`dapo_loss` with one of its parts replaced."""

    def loss(logprobs, old_logprobs, advantages, mask, clip_low=0.2, clip_high=0.28):
        per_token = objective(ratio(logprobs, old_logprobs), advantages, *band(clip_low, clip_high))
        return -sign * average(per_token, mask)

    return loss


def _dual(ratio, advantages, low, high):
    """The band of the log-ratio."""
    a = columns(advantages).detach()
    clipped = ratio.log().clamp(-low, high).exp()
    return torch.minimum(ratio * a, clipped * a)


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
            _variant(band=lambda low, high: (low, low)),
            "The room upward is the point: the band ends at 1 + clip_high.",
        ),
        Mistake(
            "a band of ± clip_high",
            _variant(band=lambda low, high: (high, high)),
            "Downward the band keeps PPO's width: it begins at 1 − clip_low.",
        ),
        Mistake(
            "clip_low and clip_high exchanged",
            _variant(band=lambda low, high: (high, low)),
            "[1 − clip_low, 1 + clip_high]: the wider side is up.",
        ),
        Mistake(
            "the band [0.8, 1.28] whatever the arguments say",
            _variant(band=lambda low, high: (0.2, 0.28)),
            "Use the arguments, not their defaults.",
        ),
        Mistake(
            "a ratio clipped to [clip_low, clip_high]",
            _variant(band=lambda low, high: (1 - low, high - 1)),
            "The band lies around 1: from 1 − clip_low to 1 + clip_high.",
        ),
        Mistake(
            "a band for the log-ratio",
            _variant(objective=_dual),
            "The ratio itself is clipped; log(1 + ε) is not ε.",
        ),
        Mistake(
            "GRPO's average: the mean of each completion, then of these",
            _variant(average=lambda x, m: aggregate(x, m, "sequence")),
            "DAPO treats all tokens of the batch alike, so that long completions count for what "
            "they are.",
        ),
        Mistake(
            "a mean over all N·T positions, padding included",
            _variant(average=lambda x, m: (x * m).mean()),
            "Divide by the number of real tokens.",
        ),
        Mistake(
            "a mean in which padding takes part",
            _variant(average=lambda x, m: x.mean()),
            "What stands after the end was never said: only entries with mask 1 enter.",
        ),
        Mistake(
            "a sum over tokens, divided by the number of completions",
            _variant(average=lambda x, m: (x * m).sum() / len(x)),
            "DAPO divides by the number of real tokens in the batch.",
        ),
        Mistake(
            "a mean that is 0/0 where the whole batch is empty",
            _variant(average=lambda x, m: (x * m).sum() / m.sum()),
            "Without any token the loss is 0: `masked_mean` knows.",
            telling=1,
        ),
        Mistake(
            "advantages laid along the tokens",
            _variant(objective=along_tokens),
            "(N,) against (N, T) lines up with T: write `advantages[:, None]`.",
        ),
        *of_the_clip(_variant),
    ),
    alternatives=(by_loop, by_cases),
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
