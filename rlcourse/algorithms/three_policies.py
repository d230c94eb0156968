"""Lesson 12: the policy that samples, the policy that was, the policy that learns.

PPO's ratio divides by the old policy and takes for granted that it wrote the batch.
Behind an engine of its own, or some updates late, the sampler is a third policy.
Truncated weights π_old/π_sampler account for it, token by token; CISPO keeps every
token's gradient and bounds its weight alone.
"""

from collections.abc import Iterable

import torch
from torch import Tensor

from rlcourse.algorithms.importance_sampling import importance_weights
from rlcourse.algorithms.policies import masked_mean


def truncated_weights(
    trainer_logprobs: Tensor,
    sampler_logprobs: Tensor,
    mask: Tensor,
    cap: float = 2.0,
    mode: str = "truncate",
) -> Tensor:
    """π_trainer/π_sampler of each token, bounded: (N, T), (N, T), (N, T) → (N, T).

    Above `cap`, mode "truncate" gives the cap and mode "mask" gives 0: the token is
    left out. Padding, which may hold any number, weighs 0. Weights are constants: no
    gradient flows through them. Raises ValueError for another mode.
    Source: Yao et al. 2025, "Your Efficient RL Framework Secretly Brings You
    Off-Policy RL Training"; truncation by Ionides 2008.
    """
    if mode not in ("truncate", "mask"):
        raise ValueError(f'mode must be "truncate" or "mask", not {mode!r}')
    weights = importance_weights(trainer_logprobs, sampler_logprobs, mask).detach()
    if mode == "mask":
        return weights.masked_fill(weights > cap, 0)
    return weights.clamp(max=cap)


def decoupled_loss(
    logprobs: Tensor,
    old_logprobs: Tensor,
    sampler_logprobs: Tensor,
    advantages: Tensor,
    mask: Tensor,
    clip: float = 0.2,
    cap: float = 2.0,
) -> Tensor:
    """PPO's clip for three policies.

    (N, T) three times, (N,) or (N, T) advantages, (N, T) → scalar.

    The clip bounds how far πθ moves from πold in this step; the truncated weight of
    πold against the sampler says what a token counts for. The mean is over all real
    tokens, 0 where there are none. Gradient flows through `logprobs` alone.
    Source: Hilton et al. 2021, "Batch size-invariance for policy optimization", eq. 4,
    with the weight truncated.
    """
    weights = truncated_weights(old_logprobs, sampler_logprobs, mask, cap)
    ratio = importance_weights(logprobs, old_logprobs, mask)
    advantages = advantages.detach()
    if advantages.dim() == 1:
        advantages = advantages[:, None]
    clipped = ratio.clamp(1 - clip, 1 + clip)
    objective = torch.minimum(ratio * advantages, clipped * advantages)
    return -masked_mean(weights * objective, mask)


def cispo_loss(
    logprobs: Tensor,
    old_logprobs: Tensor,
    advantages: Tensor,
    mask: Tensor,
    cap: float = 5.0,
) -> Tensor:
    """CISPO's loss: (N, T), (N, T), (N,) or (N, T), (N, T) → scalar.

    REINFORCE with a weight: log πθ times the advantage times the ratio πθ/πold,
    which is a constant here and at most `cap`. The mean is over all real tokens, 0
    where there are none. No token loses its gradient, however far it has moved.
    Gradient flows through `logprobs` alone.
    Source: MiniMax 2025 (MiniMax-M1), eq. 4 and 5; without a lower bound, as there.
    """
    weights = importance_weights(logprobs, old_logprobs, mask).detach().clamp(max=cap)
    advantages = advantages.detach()
    if advantages.dim() == 1:
        advantages = advantages[:, None]
    return -masked_mean(weights * advantages * logprobs, mask)


def changed_share(before: Iterable[Tensor], after: Iterable[Tensor]) -> float:
    """The share of all weights that an update has changed, in [0, 1].

    The tensors come in pairs of one shape, in lists or in iterators, which are good for
    one pass only. Each number counts once, whatever tensor it is in; without any number
    the share is 0. Raises ValueError where `before` or `after` is the longer one.
    """
    changed, total = 0, 0
    for old, new in zip(before, after, strict=True):
        changed += int((old != new).sum())
        total += old.numel()
    return changed / max(total, 1)
