"""What the exercises of this lesson share: batches, means and weights."""

from collections.abc import Iterator

import torch
from torch import Tensor

from rlcourse.checks.declaring import CaseSampler


def batches(draw: CaseSampler) -> Iterator[tuple[str, Tensor, Tensor]]:
    """(label, logprobs, mask); a batch of different lengths comes first."""
    rows, tokens = draw.size(3, 4), draw.size(5, 6)
    yield "different lengths", draw.logprobs(rows, tokens), draw.mask(rows, tokens)
    yield from draw.batches()


def mean(x: Tensor, mask: Tensor) -> Tensor:
    """Over real tokens, 0 where there are none."""
    return torch.where(mask.bool(), x, 0).sum() / mask.sum().clamp(min=1).to(x.dtype)


def weight(new: Tensor, old: Tensor, mask: Tensor, cap: float) -> Tensor:
    """new/old of each token, at most `cap`, 0 on padding; a constant."""
    ratio = torch.where(mask.bool(), new - old, 0).exp().detach()
    return ratio.clamp(max=cap) * mask.bool()
