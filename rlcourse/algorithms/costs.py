"""Lesson 17: what training costs elsewhere, and how far the rest of a run will get.

Who learns one kind of problem moves on all others, and the distance from the start is
one number. What entropy loses in a step is a covariance that can be read from a batch.
pass@k as the objective weighs groups by how hard they are. And a saturating curve says
from the first half of a run where the second will end.
"""

from collections.abc import Sequence
from math import comb

import torch
from torch import Tensor

from rlcourse.algorithms.importance_sampling import kl_divergence
from rlcourse.algorithms.policies import masked_mean


def kl_to_start(start_logits: Tensor, logits: Tensor, mask: Tensor) -> Tensor:
    """KL(start‖policy) of whole texts, read from texts that the *start* wrote, in nats.

    (N, T, V), (N, T, V), (N, T) → scalar. At every token of the mask the exact
    KL(start‖policy) of the next word, added up over a text, averaged over the N texts;
    a text without tokens counts as 0. By the chain rule the expectation is the KL of
    the two distributions over texts. A word to which the start gives probability 0
    adds 0. What stands where the mask is 0 adds nothing.
    Source: Shenfeld et al. 2025, "RL's Razor", section 4.
    """
    per_token = kl_divergence(start_logits, logits)
    return per_token.masked_fill(~mask.bool(), 0).sum(dim=1).mean()


def entropy_drift(
    logprobs: Tensor, entropy: Tensor, advantages: Tensor, mask: Tensor
) -> Tensor:
    """What a small step along the advantages does to the entropy.

    (N, T) log-probs of the drawn tokens and entropies of the distributions that they
    were drawn from, in nats, (N,) advantages, (N, T) mask → scalar. The mean over the
    mask's tokens of −(log π + H)·A, 0 where there are none. As E[log π] = −H, it
    estimates −Cov(log π, A), the change of H for each unit of step. What stands where
    the mask is 0 adds nothing.
    Source: Cui et al. 2025, "The Entropy Mechanism", section 3.
    """
    return -masked_mean((logprobs + entropy) * advantages[:, None], mask)


def pass_at_k_advantages(rewards: Tensor, group_size: int, k: int) -> Tensor:
    """Leave-one-out advantages whose policy gradient is that of pass@k: (N,) → (N,).

    Rewards are 0 or 1, and the completions of a group are contiguous. A completion is
    worth k times the pass@k of itself and k − 1 others of its group, averaged over all
    choices of these, minus k times the pass@k of the others alone. In a group with w
    wrong ones of G that is k·C(w, k)/C(G−1, k) for a right one; wrong ones share the
    negative of what the right ones got, equally. With k = 1 these are
    `leave_one_out_advantages`. Raises ValueError unless 1 ≤ k < G.
    Source: Walder and Karkhanis 2025, "Pass@K Policy Optimization", section 4.
    """
    if not 1 <= k < group_size:
        raise ValueError("pass@k against the others needs 1 <= k < group_size")
    groups = rewards.reshape(-1, group_size)
    right = groups.sum(dim=1, keepdim=True)
    wrong = group_size - right
    chances = [comb(w, k) / comb(group_size - 1, k) for w in range(group_size + 1)]
    of_right = k * rewards.new_tensor(chances)[wrong.long()]
    of_wrong = -of_right * right / wrong.clamp(min=1)
    return torch.where(groups > 0, of_right, of_wrong).flatten()


def fit_saturation(
    steps: Tensor,
    accuracy: Tensor,
    start: float,
    midpoints: Sequence[float],
    exponents: Sequence[float],
) -> tuple[float, float, float]:
    """The saturating curve nearest to part of a run: (top, midpoint, exponent).

    R(t) = start + (top − start)·f(t) with f(t) = 1/(1 + (midpoint/t)^exponent), for
    steps t > 0 and their accuracies, (n,) each. Of all midpoints and exponents given,
    the pair whose curve has the least sum of squares; of equally good ones the first,
    midpoints outermost. For each pair the best top has a closed form: start +
    Σ f (R − start)/Σ f², at most 1, as it is an accuracy.
    Source: Khatri et al. 2025, "The Art of Scaling RL Compute for LLMs" (ScaleRL),
    eq. 1.
    """
    t, gain = steps.double(), accuracy.double() - start
    best, least = (start, 0.0, 0.0), float("inf")
    for midpoint in midpoints:
        for exponent in exponents:
            f = 1 / (1 + (midpoint / t) ** exponent)
            height = min((f @ gain / (f @ f)).item(), 1 - start)
            squares = (gain - height * f).square().sum().item()
            if squares < least:
                best, least = (start + height, midpoint, exponent), squares
    return best
