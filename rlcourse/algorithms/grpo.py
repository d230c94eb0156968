"""Lesson 06: group relative policy optimization.

PPO without the critic: the other completions of the same prompt say what reward to
expect. The advantage is the reward normalized within its group, the loss is PPO's
clip, averaged first over a completion and then over completions, and a KL penalty
ties the policy to a frozen reference (Shao et al. 2024, DeepSeekMath, eq. 3).
"""

import torch
from torch import Tensor

from rlcourse.algorithms.baselines import group_mean_advantages
from rlcourse.algorithms.importance_sampling import importance_weights, kl_estimates
from rlcourse.algorithms.policies import masked_mean


def group_normalized_advantages(
    rewards: Tensor, group_size: int, eps: float = 1e-4
) -> Tensor:
    """(reward − group mean) / (group std + eps).

    (N,) → (N,), with the sample standard deviation. A group of equal rewards has
    nothing to teach: its advantages are 0. So is that of a group of one.
    Source: Shao et al. 2024 (DeepSeekMath), section 4.1.2; they leave open which
    standard deviation.
    """
    centered = group_mean_advantages(rewards, group_size).reshape(-1, group_size)
    std = centered.std(dim=1, correction=min(1, group_size - 1), keepdim=True)
    return (centered / (std + eps)).flatten()


def grpo_loss(
    logprobs: Tensor,
    old_logprobs: Tensor,
    ref_logprobs: Tensor,
    advantages: Tensor,
    mask: Tensor,
    clip: float = 0.2,
    beta: float = 0.04,
) -> Tensor:
    """GRPO's loss: (N, T) three times, (N,) or (N, T), (N, T) → scalar.

    The clipped objective minus β times the k3 estimate of KL(πθ‖πref), averaged
    over each completion's tokens and then over completions, so a short completion's
    tokens weigh more than a long one's. An empty completion counts as 0. Gradient
    flows through `logprobs` alone: everything else is a constant.
    Source: Shao et al. 2024 (DeepSeekMath), eq. 3 and 4.
    """
    # Padding may hold anything. Its exp could be infinite, and 0 · inf is NaN.
    padding = ~mask.bool()
    logprobs = logprobs.masked_fill(padding, 0)
    ref_logprobs = ref_logprobs.masked_fill(padding, 0)
    ratio = importance_weights(logprobs, old_logprobs, mask)
    advantages = advantages.detach()
    if advantages.dim() == 1:
        advantages = advantages[:, None]
    clipped = ratio.clamp(1 - clip, 1 + clip)
    objective = torch.minimum(ratio * advantages, clipped * advantages)
    per_token = objective - beta * kl_estimates(logprobs, ref_logprobs, "k3")
    return -masked_mean(per_token, mask, dim=1).mean()


def grpo_gradient_coefficient(
    advantages: Tensor, logprobs: Tensor, ref_logprobs: Tensor, beta: float
) -> Tensor:
    """What multiplies ∇ log πθ of each token at μ = 1.

    (N,) or (N, T), (N, T), (N, T) → (N, T). Â + β (πref/πθ − 1): the advantage, and
    a pull back toward the reference.
    Source: Shao et al. 2024 (DeepSeekMath), eq. 21.
    """
    if advantages.dim() == 1:
        advantages = advantages[:, None]
    return advantages + beta * torch.expm1(ref_logprobs - logprobs)


def grpo_step(
    policy,
    optimizer,
    rollouts,
    num_iterations: int,
    clip: float = 0.2,
    beta: float = 0.04,
    max_grad_norm: float = 1.0,
) -> list[float]:
    """μ GRPO updates on one batch, `num_iterations`, in place; the loss of each.

    `rollouts` holds old_logprobs, ref_logprobs, advantages and mask. They were
    computed once, when the batch was sampled, and stay fixed; only
    `policy.logprobs(rollouts)`, (N, T), is computed anew for every update. The policy
    stays in the mode, training or evaluation, in which it comes.
    Source: Shao et al. 2024 (DeepSeekMath), algorithm 1.
    """
    losses = []
    for _ in range(num_iterations):
        optimizer.zero_grad()
        logprobs = policy.logprobs(rollouts)
        loss = grpo_loss(
            logprobs,
            rollouts.old_logprobs,
            rollouts.ref_logprobs,
            rollouts.advantages,
            rollouts.mask,
            clip,
            beta,
        )
        loss.backward()
        torch.nn.utils.clip_grad_norm_(policy.parameters(), max_grad_norm)
        optimizer.step()
        losses.append(loss.item())
    return losses
