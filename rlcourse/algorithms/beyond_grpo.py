"""Lesson 07: the knobs of GRPO, and what each of them really turns.

The per-token objective is one thing, how it is averaged another, and papers mostly
differ in the second. Dr. GRPO divides by a constant, DAPO by all tokens and clips
asymmetrically, GSPO takes the ratio of whole completions. Each removes a bias that
the averages of GRPO brought in.
"""

import torch
from torch import Tensor

from rlcourse.algorithms.baselines import group_mean_advantages
from rlcourse.algorithms.importance_sampling import importance_weights
from rlcourse.algorithms.policies import masked_mean


def aggregate(
    per_token: Tensor,
    mask: Tensor,
    how: str = "sequence",
    max_tokens: int | None = None,
) -> Tensor:
    """One number from a number per token: (N, T), (N, T) → scalar.

    - "sequence" (GRPO): the mean of each completion, then the mean of these.
    - "token" (DAPO): the sum over all real tokens, divided by their number.
    - "constant" (Dr. GRPO): that sum divided by N · max_tokens.

    An empty completion counts as 0. Raises ValueError for another `how`, and for
    "constant" without `max_tokens`.
    """
    if how == "sequence":
        return masked_mean(per_token, mask, dim=1).mean()
    if how == "token":
        return masked_mean(per_token, mask)
    if how == "constant" and max_tokens is not None:
        total = per_token.masked_fill(~mask.bool(), 0).sum()
        return total / (len(per_token) * max_tokens)
    raise ValueError(f"cannot aggregate how={how!r} with max_tokens={max_tokens!r}")


def dr_grpo_loss(
    logprobs: Tensor,
    old_logprobs: Tensor,
    advantages: Tensor,
    mask: Tensor,
    max_tokens: int,
    clip: float = 0.2,
) -> Tensor:
    """Dr. GRPO's loss: (N, T), (N, T), (N,) or (N, T), (N, T) → scalar.

    The clipped objective, summed over real tokens and divided by the constant N ·
    max_tokens: how long a completion is does not change what its tokens weigh. Its
    advantages are `group_mean_advantages`, not divided by a standard deviation.
    Gradient flows through `logprobs` alone.
    Source: Liu et al. 2025, "Understanding R1-Zero-Like Training", section 3.
    """
    ratio = importance_weights(logprobs, old_logprobs, mask)
    advantages = advantages.detach()
    if advantages.dim() == 1:
        advantages = advantages[:, None]
    clipped = ratio.clamp(1 - clip, 1 + clip)
    objective = torch.minimum(ratio * advantages, clipped * advantages)
    return -aggregate(objective, mask, "constant", max_tokens)


def dapo_loss(
    logprobs: Tensor,
    old_logprobs: Tensor,
    advantages: Tensor,
    mask: Tensor,
    clip_low: float = 0.2,
    clip_high: float = 0.28,
) -> Tensor:
    """DAPO's loss: (N, T), (N, T), (N,) or (N, T), (N, T) → scalar.

    The ratio is clipped to [1 − clip_low, 1 + clip_high], with more room upward so
    that an unlikely token can become likely; the mean is over all real tokens, 0 where
    there are none.
    Gradient flows through `logprobs` alone.
    Source: Yu et al. 2025 (DAPO), eq. 8.
    """
    ratio = importance_weights(logprobs, old_logprobs, mask)
    advantages = advantages.detach()
    if advantages.dim() == 1:
        advantages = advantages[:, None]
    clipped = ratio.clamp(1 - clip_low, 1 + clip_high)
    objective = torch.minimum(ratio * advantages, clipped * advantages)
    return -aggregate(objective, mask, "token")


def informative_groups(rewards: Tensor, group_size: int) -> Tensor:
    """Which groups hold more than one reward: (N,) → (B,) bool.

    The others have advantage 0 everywhere; DAPO samples again in their place.
    Source: Yu et al. 2025 (DAPO), section 3.2.
    """
    groups = rewards.reshape(-1, group_size)
    return (groups != groups[:, :1]).any(dim=1)


def overlong_penalty(lengths: Tensor, max_tokens: int, buffer: int) -> Tensor:
    """A soft limit on length, added to the reward: (N,) → (N,) in [−1, 0].

    0 up to max_tokens − buffer, then falling linearly to −1 at max_tokens, −1 beyond.
    `lengths` are numbers of tokens, integers or floats.
    Source: Yu et al. 2025 (DAPO), eq. 13.
    """
    excess = lengths - (max_tokens - buffer)
    return (-excess / buffer).clamp(-1, 0)


def gspo_loss(
    logprobs: Tensor,
    old_logprobs: Tensor,
    advantages: Tensor,
    mask: Tensor,
    clip: float = 0.2,
) -> Tensor:
    """GSPO's loss: (N, T), (N, T), (N,), (N, T) → scalar.

    One ratio for a whole completion, exp of the *mean* log-ratio of its tokens,
    clipped as in PPO. An empty completion counts as 0. Gradient flows through
    `logprobs` alone.
    Source: Zheng et al. 2025 (GSPO), eq. 5 and 7.
    """
    mean_log_ratio = masked_mean(logprobs - old_logprobs.detach(), mask, dim=1)
    ratio = mean_log_ratio.exp() * mask.bool().any(dim=1)
    clipped = ratio.clamp(1 - clip, 1 + clip)
    advantages = advantages.detach() * mask.bool().any(dim=1)
    return -torch.minimum(ratio * advantages, clipped * advantages).mean()


def sign_advantages(rewards: Tensor, group_size: int, margin: float = 0.0) -> Tensor:
    """+1 above the group's mean, −1 below, 0 within `margin` of it: (N,) → (N,).

    Equal rewards give 0 and never the sign of a rounding error, which
    `group_mean_advantages` sees to.
    """
    advantages = group_mean_advantages(rewards, group_size)
    return advantages.sign().masked_fill(advantages.abs() <= margin, 0)


def target_logprobs(old_logprobs: Tensor, advantages: Tensor) -> Tensor:
    """Where each token's log-prob should go: (N, T), (N,) or (N, T) → (N, T) nats.

    The square root of its probability where the advantage is positive, its square
    where it is negative, unchanged where it is zero.
    """
    if advantages.dim() == 1:
        advantages = advantages[:, None]
    exponent = torch.where(advantages > 0, 0.5, torch.where(advantages < 0, 2.0, 1.0))
    return old_logprobs * exponent.to(old_logprobs.dtype)
