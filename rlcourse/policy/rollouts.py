"""A batch of sampled completions: what the sampler returns and every update consumes."""

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import torch
from torch import Tensor


@dataclass(frozen=True)
class Rollouts:
    """N = B·G completions of B prompts; the G rows of one prompt are contiguous.

    Prompts are left-padded and completions right-padded, so that
    ``cat([prompt_tokens, tokens], 1)`` is what the model read.
    """

    prompt_tokens: Tensor  # (N, P) long
    prompt_mask: Tensor  # (N, P) bool, False on left padding
    tokens: Tensor  # (N, T) long, sampled completion tokens, padding after the end
    mask: Tensor  # (N, T) bool, what the policy wrote: up to and including the first EOS
    old_logprobs: Tensor  # (N, T) nats, at the sampling temperature, as sampled; 0 on padding
    group_size: int  # G
    temperature: float = 1.0
    rewards: Tensor | None = None  # (N,)
    advantages: Tensor | None = None  # (N,) or (N, T)
    sampler_logprobs: Tensor | None = None  # (N, T) nats, if `old_logprobs` were recomputed
    ref_logprobs: Tensor | None = None  # (N, T) nats, under the frozen reference policy
    values: Tensor | None = None  # (N, T), of the critic, when these were sampled
    returns: Tensor | None = None  # (N, T), the critic's targets
    teacher_logprobs: Tensor | None = None  # (N, T) nats, under the teacher of a distillation
    # (N, T) bool, what the model reads, where that is more than `mask`: an environment's words
    read_mask: Tensor | None = None

    @property
    def reads(self) -> Tensor:
        """(N, T) bool: the tokens that the model reads, which are all but padding."""
        return self.mask if self.read_mask is None else self.read_mask

    def __len__(self) -> int:
        return len(self.tokens)

    def rows(self, index) -> "Rollouts":
        """The rows that `index` (slice, long or bool tensor) selects, as a smaller batch."""
        chosen: dict[str, Any] = {
            f.name: value[index]
            for f in fields(self)
            if isinstance(value := getattr(self, f.name), Tensor)
        }
        return replace(self, **chosen)

    def to(self, device: torch.device | str) -> "Rollouts":
        """The same batch on another device."""
        moved: dict[str, Any] = {
            f.name: value.to(device)
            for f in fields(self)
            if isinstance(value := getattr(self, f.name), Tensor)
        }
        return replace(self, **moved)


def truncated(rollouts: Rollouts, eos_ids: Sequence[int]) -> Tensor:
    """Which completions have no EOS because they reached `max_tokens`: (N,) bool.

    Of an episode it is the last turn that counts.
    """
    eos = torch.tensor(list(eos_ids), device=rollouts.tokens.device)
    ends = torch.isin(rollouts.tokens, eos) & rollouts.mask
    if rollouts.read_mask is None:
        return ~ends.any(1)
    place = torch.arange(ends.shape[1], device=ends.device)
    last = (place * rollouts.mask).argmax(1, keepdim=True)
    return ~ends.gather(1, last).squeeze(1)
