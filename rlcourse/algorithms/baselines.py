"""Lesson 03: baselines.

Subtracting from the reward a number that does not depend on the action leaves the
expected gradient as it is, because E_{a∼π}[∇ log π(a)] = 0, and changes its
variance:

    ∇J(θ) = E[ (R(y) − b) ∇ log πθ(y) ]        (Williams 1992; Greensmith et al. 2004)

With G completions per prompt, the group itself supplies the baseline.
"""

import torch
from torch import Tensor

from rlcourse.algorithms.policy_gradient import score_function


def group_mean_advantages(rewards: Tensor, group_size: int) -> Tensor:
    """Reward minus the mean of its group: (N,) → (N,), rows iG … iG+G−1 are one group.

    The mean includes the sample itself, so the expected gradient shrinks by the factor
    (G−1)/G.
    Source: Shao et al. 2024 (DeepSeekMath), section 4.1.2, before the division by
    the standard deviation.
    """
    groups = rewards.reshape(-1, group_size)
    # Counted from the first reward, so that equal ones give 0 and no rounding error.
    groups = groups - groups[:, :1]
    return (groups - groups.mean(dim=1, keepdim=True)).flatten()


def leave_one_out_advantages(rewards: Tensor, group_size: int) -> Tensor:
    """Reward minus the mean of the *other* rewards of its group: (N,) → (N,).

    Unbiased, and G/(G−1) times the group-mean advantage. A group of one has no
    others: its baseline is 0.
    Source: Kool et al. 2019, "Buy 4 REINFORCE Samples, Get a Baseline for Free!";
    Ahmadian et al. 2024 (RLOO).
    """
    groups = rewards.reshape(-1, group_size)
    others = groups.sum(dim=1, keepdim=True) - groups
    return (groups - others / max(group_size - 1, 1)).flatten()


def optimal_baseline(rewards: Tensor, score_norms_squared: Tensor) -> Tensor:
    """The constant baseline of least gradient variance: (n,), (n,) → scalar.

    b* = E[‖∇ log π‖² R] / E[‖∇ log π‖²]: the mean reward, each sample weighted by
    how strongly it pulls. 0 if all norms are 0.
    Source: Weaver and Tao 2001; Greensmith et al. 2004, for a baseline that is one
    number.
    """
    total = score_norms_squared.sum().clamp(min=torch.finfo(rewards.dtype).tiny)
    return (score_norms_squared * rewards).sum() / total


def gradient_variance(gradients: Tensor) -> Tensor:
    """Trace of the covariance of n ≥ 2 gradients, unbiased: (n, D) → scalar."""
    return gradients.var(dim=0, correction=1).sum()


def weighted_scores(logits: Tensor) -> Tensor:
    """Row a is π(a) ∇ log π(a): (V,) → (V, V), the scores weighted by the policy.

    The rows sum to zero, which is why a baseline is free.
    """
    scores = torch.stack(
        [score_function(logits, action) for action in range(len(logits))]
    )
    return logits.softmax(dim=-1)[:, None] * scores
