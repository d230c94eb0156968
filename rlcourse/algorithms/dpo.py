"""Lesson 09: direct preference optimization.

Maximizing reward under a KL penalty has a solution in closed form, π*(y) ∝ πref(y)
exp(r(y)/β). Solved for the reward, it says that every policy is the optimum of some
reward, its *implicit reward* β log(πθ/πref); put into Bradley and Terry's model, the
normalizer cancels and what remains is a classification loss on pairs (Rafailov et al.
2023).
"""

import torch
import torch.nn.functional as F
from torch import Tensor


def optimal_policy(ref_probs: Tensor, rewards: Tensor, beta: float) -> Tensor:
    """The policy that maximizes E[r] − β KL(π‖πref): (V,), (V,) → (V,) probabilities.

    What the reference never says has probability 0, whatever it would earn.
    Source: Rafailov et al. 2023 (DPO), eq. 4.
    """
    return (ref_probs.log() + rewards / beta).softmax(dim=-1)


def sequence_logprobs(logprobs: Tensor, mask: Tensor) -> Tensor:
    """Log-prob of each completion, summed over its tokens: (N, T), (N, T) → (N,)."""
    return logprobs.masked_fill(~mask.bool(), 0).sum(dim=1)


def implicit_rewards(logprobs: Tensor, ref_logprobs: Tensor, beta: float) -> Tensor:
    """β (log πθ(y) − log πref(y)) of whole completions: (n,), (n,) → (n,).

    The reward that πθ is optimal for, up to a constant per prompt. The reference is a
    constant: no gradient flows into it.
    Source: Rafailov et al. 2023 (DPO), eq. 5.
    """
    return beta * (logprobs - ref_logprobs.detach())


def preference_pairs(rewards: Tensor, group_size: int) -> Tensor:
    """Rows to compare, better one first: (N,) → (n, 2) long, (chosen, rejected).

    In each group the best completion meets the worst, the second best the second
    worst, and so on while their rewards differ. No completion is in two pairs.
    """
    pairs = []
    for start in range(0, len(rewards), group_size):
        group = rewards[start : start + group_size]
        order = (start + group.argsort(descending=True, stable=True)).tolist()
        for chosen, rejected in zip(
            order[: group_size // 2], order[::-1], strict=False
        ):
            if rewards[chosen] > rewards[rejected]:
                pairs.append((chosen, rejected))
    return torch.tensor(pairs, dtype=torch.long, device=rewards.device).reshape(-1, 2)


def dpo_loss(
    chosen_logprobs: Tensor,
    rejected_logprobs: Tensor,
    ref_chosen_logprobs: Tensor,
    ref_rejected_logprobs: Tensor,
    beta: float = 0.1,
    label_smoothing: float = 0.0,
) -> tuple[Tensor, Tensor, Tensor]:
    """DPO's loss on n pairs of log-probs of whole completions, (n,) each.

    → (loss, chosen rewards, rejected rewards): a scalar, and the implicit rewards
    (n,) without gradient. The reference is a constant: no gradient flows into it.
    `label_smoothing` is the share of pairs taken to be mislabeled.
    Source: Rafailov et al. 2023 (DPO), eq. 7; Mitchell 2023 for the smoothing (cDPO).
    """
    chosen = implicit_rewards(chosen_logprobs, ref_chosen_logprobs, beta)
    rejected = implicit_rewards(rejected_logprobs, ref_rejected_logprobs, beta)
    margin = chosen - rejected
    loss = -(1 - label_smoothing) * F.logsigmoid(
        margin
    ) - label_smoothing * F.logsigmoid(-margin)
    return loss.mean(), chosen.detach(), rejected.detach()
