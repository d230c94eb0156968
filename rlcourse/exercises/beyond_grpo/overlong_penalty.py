"""A soft limit on length."""

from collections.abc import Iterator

import torch

from rlcourse.algorithms.beyond_grpo import overlong_penalty
from rlcourse.checks.calling import Case
from rlcourse.checks.cases import CaseSampler
from rlcourse.checks.exercise import Exercise, Mistake


def _cases(draw: CaseSampler) -> Iterator[Case]:
    def case(label, lengths, max_tokens, buffer) -> Case:
        """Lengths are counts. Counts have no precision, so the result may have torch's default."""
        arguments = {"lengths": torch.as_tensor(lengths), "max_tokens": max_tokens}
        return Case(label, {**arguments, "buffer": buffer}, atol=1e-6)

    yield case("worked: a limit of 64, a buffer of 16", [10, 48, 52, 56, 64, 70], 64, 16)
    yield case("all short", [0, 1, 5], 20, 4)
    yield case("at the start of the buffer", [15, 16, 17], 20, 4)
    yield case("at the limit", [19, 20, 21, 60], 20, 4)
    yield case("a buffer of one token", [18, 19, 20, 21], 20, 1)
    yield case("a buffer as long as the limit", [0, 3, 6, 12, 15], 12, 12)
    limit, buffer = draw.integer(30, 60), draw.integer(5, 20)
    yield case("random lengths", draw.integers(12, high=80) + 1, limit, buffer)
    yield case("inside the buffer", torch.arange(41, 50), 50, 10)
    yield case("one completion", [18], 20, 5)
    yield case("lengths that are float", (draw.integers(6, high=80) + 1).float(), limit, buffer)


def by_where(lengths, max_tokens, buffer):
    start = max_tokens - buffer
    ramp = (start - lengths) / buffer
    return torch.where(lengths <= start, 0.0, torch.where(lengths <= max_tokens, ramp, -1.0)).to(
        ramp.dtype
    )


def by_loop(lengths, max_tokens, buffer):
    values = [min(0.0, max(-1.0, (max_tokens - buffer - n) / buffer)) for n in lengths.tolist()]
    dtype = lengths.dtype if lengths.is_floating_point() else torch.get_default_dtype()
    return torch.tensor(values, dtype=dtype)


EXERCISE = Exercise(
    reference=overlong_penalty,
    lesson="07_beyond_grpo",
    section="A soft limit",
    points=3,
    difficulty=2,
    minutes=10,
    cases=_cases,
    mistakes=(
        Mistake(
            "a penalty with its sign turned",
            lambda lengths, max_tokens, buffer: -overlong_penalty(lengths, max_tokens, buffer),
            "It is *added* to the reward, so it must be negative.",
        ),
        Mistake(
            "a penalty that starts at the limit",
            lambda lengths, max_tokens, buffer: -((lengths - max_tokens) / buffer).clamp(0, 1),
            "The ramp lies *below* the limit: from max_tokens − buffer to max_tokens.",
        ),
        Mistake(
            "a penalty that goes on falling beyond the limit",
            lambda lengths, max_tokens, buffer: (
                -((lengths - max_tokens + buffer) / buffer).clamp(min=0)
            ),
            "−1 is the worst, however long the completion.",
        ),
        Mistake(
            "a bonus for short completions",
            lambda lengths, max_tokens, buffer: (
                -((lengths - max_tokens + buffer) / buffer).clamp(max=1)
            ),
            "Up to max_tokens − buffer the penalty is 0: being short is no merit.",
        ),
        Mistake(
            "a ramp that is not limited at either end",
            lambda lengths, max_tokens, buffer: -(lengths - max_tokens + buffer) / buffer,
            "Clamp to between −1 and 0.",
        ),
        Mistake(
            "a step in place of a ramp",
            lambda lengths, max_tokens, buffer: (
                -(lengths > max_tokens - buffer).to((lengths / 1).dtype)
            ),
            "In the buffer the penalty grows token by token: a step is what it is meant to avoid.",
        ),
        Mistake(
            "a penalty for nothing but completions beyond the limit",
            lambda lengths, max_tokens, buffer: -(lengths > max_tokens).to((lengths / 1).dtype),
            "That is the hard limit; the soft one sets in `buffer` tokens earlier.",
        ),
        Mistake(
            "a ramp over max_tokens in place of the buffer",
            lambda lengths, max_tokens, buffer: (
                -((lengths - max_tokens + buffer) / max_tokens).clamp(0, 1)
            ),
            "The ramp falls from 0 to −1 within `buffer` tokens: divide by `buffer`.",
        ),
        Mistake(
            "a ramp from the first token on",
            lambda lengths, max_tokens, buffer: -(lengths / max_tokens).clamp(0, 1),
            "Only the last `buffer` tokens before the limit are penalized.",
        ),
        Mistake(
            "a ramp that starts at `buffer` tokens",
            lambda lengths, max_tokens, buffer: -((lengths - buffer) / buffer).clamp(0, 1),
            "The ramp starts `buffer` tokens before the limit: at max_tokens − buffer.",
        ),
        Mistake(
            "−1 from the limit on, and 0 before it",
            lambda lengths, max_tokens, buffer: (
                -((lengths - max_tokens + buffer) // buffer).clamp(0, 1).to((lengths / 1).dtype)
            ),
            "In the buffer the penalty grows token by token. (If you divide with `//`: it throws "
            "the fraction away, and the fraction is the ramp.)",
        ),
        Mistake(
            "a ramp that is 0 again beyond the limit",
            lambda lengths, max_tokens, buffer: (
                overlong_penalty(lengths, max_tokens, buffer) * (lengths <= max_tokens)
            ),
            "Whoever is over the limit must not fare better than whoever comes near it: −1.",
        ),
        Mistake(
            "a squared ramp",
            lambda lengths, max_tokens, buffer: (
                -overlong_penalty(lengths, max_tokens, buffer).square()
            ),
            "The penalty is linear in the buffer.",
        ),
        Mistake(
            "1 plus the penalty",
            lambda lengths, max_tokens, buffer: 1 + overlong_penalty(lengths, max_tokens, buffer),
            "It is added to the reward: a completion that is short enough gets 0.",
        ),
    ),
    alternatives=(by_where, by_loop),
    hints=(
        "How many tokens of the buffer has a completion used up?",
        "lengths − (max_tokens − buffer) is how far it is into the buffer. Divide its negative by "
        "`buffer` and keep the result between −1 and 0.",
        "`clamp` takes both ends:\n\n"
        "    excess = lengths - (max_tokens - buffer)\n"
        "    return (-excess / ...).clamp(..., ...)",
    ),
)
