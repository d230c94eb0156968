"""What the losses with a clip share: batches, and the ways to get them wrong."""

from collections.abc import Iterator

import torch
from torch import Tensor

from rlcourse.checks.calling import Case
from rlcourse.checks.cases import CaseSampler, tensor
from rlcourse.checks.exercise import Mistake
from rlcourse.checks.sketch import Sketch


def columns(advantages: Tensor) -> Tensor:
    """(N,) as a column, (N, T) as it is."""
    return advantages[:, None] if advantages.dim() == 1 else advantages


def case_of(draw: CaseSampler, label: str, logprobs: Tensor, mask: Tensor, **given) -> Case:
    """A call on a batch that a neighboring policy sampled."""
    old = (logprobs + 0.4 * draw.normal(*logprobs.shape)).to(logprobs.dtype)
    arguments = {
        "logprobs": logprobs,
        "old_logprobs": old,
        "advantages": draw.rewards(len(logprobs), logprobs.dtype),
        "mask": mask,
    }
    return Case(label, {**arguments, **given})


def one_token(label: str, ratio: float, advantage: float, **given) -> Case:
    """A single token with this ratio."""
    old = tensor([[-2.0]])
    return Case(
        label,
        {
            "logprobs": old + tensor([[ratio]]).log(),
            "old_logprobs": old,
            "advantages": tensor([advantage]),
            "mask": torch.ones(1, 1) > 0,
            **given,
        },
    )


def other_bands(**given) -> Iterator[Case]:
    """Always the same: a band that is not `clip` shows in each, whatever else is wrong."""
    yield one_token("worked: a ratio of 1.5 in a band of 0.8", 1.5, 1.0, clip=0.8, **given)
    yield one_token("worked: a ratio of 0.6 in a band of 0.1", 0.6, -1.0, clip=0.1, **given)


def _extremes(draw: CaseSampler, **given) -> Iterator[Case]:
    """Always the same: a second bound on the ratio or on the advantage shows in each of the first.

    A band that is only wider shows in the last but one, an advantage that is added in the last.
    """
    for ratio, advantage in ((20.0, -1.0), (40.0, -0.5), (15.0, -2.0), (3.0, 1.0), (0.5, -5.0)):
        yield one_token(f"ratio {ratio:g}, advantage {advantage:g}", ratio, advantage, **given)
    one_right = torch.full((8,), -0.3535, dtype=torch.float64)
    one_right[draw.integer(0, 7)] = 2.4744  # (1 − 1/8) / std
    logprobs, mask = draw.logprobs(8, 3), torch.ones(8, 3) > 0
    for label, advantages in (("right", one_right), ("wrong", -one_right)):
        arguments = given | {"advantages": advantages}
        yield case_of(draw, f"one {label} of eight", logprobs, mask, **arguments)


def both_signs(draw: CaseSampler, logprobs: Tensor) -> dict[str, Tensor]:
    """Of the first two completions, near the old policy, one is praised and one is blamed.

    So gradient reaches the log-probs, old ones among them where it leaks, through any clip.
    """
    rows = len(logprobs)
    spread = torch.full((rows, 1), 0.4).double()
    spread[:2] = 0.1
    signs = torch.where(torch.arange(rows) % 2 == 0, 1.0, -1.0)
    return {
        "old_logprobs": logprobs + spread * draw.normal(*logprobs.shape),
        "advantages": signs * draw.rewards(rows).abs(),
    }


def batches(draw: CaseSampler, **given) -> Iterator[Case]:
    """All the shapes of `CaseSampler.batches`; a batch of different lengths comes first."""
    rows, tokens = draw.size(3, 4), draw.size(5, 6)
    logprobs, mask = draw.logprobs(rows, tokens), draw.mask(rows, tokens)
    signs = both_signs(draw, logprobs)
    yield case_of(draw, "different lengths", logprobs, mask, **signs, **given)
    for label, other, other_mask in draw.batches():
        yield case_of(draw, label, other, other_mask, **given)
    yield from _extremes(draw, **given)


_MIN = "torch.minimum(ratio * a, clipped * a)"
_COLUMN = "a = a[:, None]"


def of_the_clip(sketch: Sketch, *but: str) -> tuple[Mistake, ...]:
    """Lesson 05's mistakes, for a loss whose lines are those of PPO's; `but` those of that name."""
    edit = sketch.edit
    found = (
        Mistake(
            "the larger of the two terms",
            edit("the clip: the min", "torch.minimum", "torch.maximum"),
            "The min keeps the pessimistic one, so that a step in the wrong direction can be "
            "undone (lesson 05).",
        ),
        Mistake(
            "the clipped term alone",
            edit("the clip: the min", _MIN, "clipped * a"),
            "What lies outside the band on the *bad* side would get no gradient back: take the "
            "min with the unclipped term.",
        ),
        Mistake(
            "A · min(ratio, clip(ratio))",
            edit("the clip: the min", _MIN, "torch.minimum(ratio, clipped) * a"),
            "For a negative advantage the smaller product has the larger ratio: multiply by A "
            "first, then take the min.",
        ),
        Mistake(
            "a loss without the clip",
            edit("the clip: the min", _MIN, "ratio * a"),
            "Without it nothing stops what has already moved far (lesson 05).",
        ),
        Mistake(
            "a ratio upside down",
            edit("the ratio: what it is made of", "(logprobs - old)", "(old - logprobs)"),
            "The new policy stands on top: exp(logprobs − old_logprobs).",
        ),
        Mistake(
            "a ratio that no gradient passes through",
            edit("the ratio: its gradient", "clipped = ", "ratio = ratio.detach()\n    clipped = "),
            "The ratio *is* where the gradient comes from: detach the old log-probs, not the "
            "ratio.",
        ),
        Mistake(
            "a loss through which gradient flows into the old log-probs",
            edit("the constants: old log-probs", "old_logprobs.detach()", "old_logprobs"),
            "They are numbers from the time of sampling: `old_logprobs.detach()`.",
        ),
        *of_the_loss(sketch),
    )
    return tuple(mistake for mistake in found if mistake.name not in but)


def of_the_loss(sketch: Sketch) -> Iterator[Mistake]:
    """What any loss of an advantage can get wrong."""
    edit = sketch.edit
    if _COLUMN in sketch.source:
        yield Mistake(
            "advantages laid along the tokens",
            edit("the advantages: their shape", _COLUMN, "a = a"),
            "(N,) against (N, T) lines up with T: write `advantages[:, None]`, so that every token "
            "of a row gets the row's advantage.",
        )
    yield Mistake(
        "a loss through which gradient flows into the advantages",
        edit("the constants: advantages", "advantages.detach()", "advantages"),
        "An advantage is a number computed from rewards, a constant: `advantages.detach()`.",
    )
    yield Mistake(
        "the objective, not the loss: the sign is missing",
        edit("the sign", "return -", "return "),
        "Optimizers minimize: what is returned is minus the objective.",
    )
