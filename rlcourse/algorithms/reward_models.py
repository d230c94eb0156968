"""Lesson 08: reward models.

People cannot say what an answer is worth, but they can say which of two is better.
Bradley and Terry's model turns comparisons into scores: P(a beats b) = σ(r_a − r_b).
A scalar head on a language model learns r from pairs, and then stands in for the
people.
"""

import torch
import torch.nn.functional as F
from torch import Tensor


def preference_probability(reward_a: Tensor, reward_b: Tensor) -> Tensor:
    """P(a is preferred to b) = σ(r_a − r_b): any two shapes that broadcast.

    Source: Bradley and Terry 1952; Christiano et al. 2017, eq. 1.
    """
    return torch.sigmoid(reward_a - reward_b)


def bradley_terry_loss(chosen: Tensor, rejected: Tensor) -> Tensor:
    """Negative log-likelihood of the preferences in nats: (n,), (n,) rewards → scalar.

    Differentiable in both, and finite for any finite rewards.
    Source: Ouyang et al. 2022 (InstructGPT), eq. 1.
    """
    return -F.logsigmoid(chosen - rejected).mean()


def last_token_index(mask: Tensor) -> Tensor:
    """Index of each row's last real token: (N, T) → (N,) long; 0 for an empty row.

    There the model has read everything, so there the scalar head reads the reward.
    Padding may stand on either side: prompts are padded left, completions right.
    """
    positions = torch.arange(mask.shape[1], device=mask.device)
    return (positions * mask.bool()).amax(dim=1)


def reward_accuracy(chosen: Tensor, rejected: Tensor) -> Tensor:
    """Share of pairs that the rewards put in the right order: (n,), (n,) → scalar.

    A tie is not the right order.
    """
    return (chosen > rejected).to(chosen.dtype).mean()
