"""What the losses with a clip share: batches, and the ways to get them wrong."""

from collections.abc import Iterator

import torch
from torch import Tensor

from rlcourse.checks.declaring import Case, CaseSampler, tensor


def columns(advantages: Tensor) -> Tensor:
    """(N,) as a column, (N, T) as it is."""
    return advantages[:, None] if advantages.dim() == 1 else advantages


def case_of(draw: CaseSampler, label: str, logprobs: Tensor, mask: Tensor, **given) -> Case:
    """A call on a batch that a neighboring policy sampled."""
    arguments = {
        "logprobs": logprobs,
        "old_logprobs": draw.near(logprobs, 0.4),
        "advantages": draw.rewards(len(logprobs), logprobs.dtype),
        "mask": mask,
    }
    return Case(label, {**arguments, **given})


def one_token(label: str, ratio: float, advantage: float, **given) -> Case:
    """A single token with this ratio."""
    old = tensor([[-4.0]])
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
        "old_logprobs": draw.near(logprobs, spread),
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
