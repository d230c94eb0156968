"""Lesson 13: whether training taught something or sharpened it, and who it listened to.

pass@k for every k tells a model that finds new answers from one that repeats its best.
Rewards that know nothing of the truth are the control. Which problems the gradient
comes from is decided by the divisor of the advantage; how much reward is left to gain,
by the entropy that is left to spend.
"""

from collections.abc import Sequence
from math import comb

import torch
from torch import Tensor

from rlcourse.algorithms.gsm8k import majority_vote, pass_at_k


def pass_at_k_curve(counts: Tensor, n: int, ks: Sequence[int]) -> Tensor:
    """pass@k of every problem, for every k: (P,) → (P, K), float64.

    `counts[i]` of n completions of problem i are right. Row i is that problem's curve;
    their mean is the curve of the model. Without problems it is empty, (0, K). Raises
    ValueError where `pass_at_k` does.
    Source: Chen et al. 2021 (Codex), eq. 1; as a curve, Yue et al. 2025.
    """
    rows = [[pass_at_k(n, c, k) for k in ks] for c in counts.tolist()]
    curves = torch.tensor(rows, dtype=torch.float64, device=counts.device)
    return curves.reshape(len(counts), len(ks))


def majority_reward(answers: Sequence[str | None], group_size: int) -> Tensor:
    """1 for each completion that gives its group's commonest answer, 0 for the others.

    N answers → (N,) float. The answers of a group are contiguous. None is no answer: it
    neither votes nor earns. A tie is decided as in `majority_vote`. The truth is not
    used.
    Source: Zuo et al. 2025, "TTRL"; as a control, Shao et al. 2025.
    """
    rewards = []
    for start in range(0, len(answers), group_size):
        group = answers[start : start + group_size]
        winner = majority_vote(group)
        rewards += [float(a is not None and a == winner) for a in group]
    return torch.tensor(rewards)


def difficulty_weight(p: Tensor, group_size: int, method: str) -> Tensor:
    """How much a problem that is solved with probability p moves its own log-odds.

    (n,) probabilities → (n,), the expectation over groups of G completions of
    (1/G) Σᵢ Aᵢ rᵢ with rewards of 0 and 1. With a share q of the group right that is
    q(1 − q) divided by what `method` divides r − mean by: "mean" by nothing, "std" by
    the sample standard deviation, without ε, "maxrl" by the mean. Groups that agree
    give 0. Raises ValueError for another method.
    Source: Tajwar et al. 2026, "Maximum Likelihood Reinforcement Learning".
    """
    if method not in ("mean", "std", "maxrl"):
        raise ValueError(f'method must be "mean", "std" or "maxrl", not {method!r}')
    weight = torch.zeros_like(p)
    for right in range(1, group_size):  # none right or all right: no advantages
        q = right / group_size
        std = (q * (1 - q) * group_size / (group_size - 1)) ** 0.5
        divisor = {"mean": 1.0, "std": std, "maxrl": q}[method]
        ways = float(comb(group_size, right))
        chance = ways * p**right * (1 - p) ** (group_size - right)
        weight = weight + chance * q * (1 - q) / divisor
    return weight


def fit_entropy_reward(entropy: Tensor, reward: Tensor) -> tuple[float, float]:
    """(a, b) of R = −a·e^H + b, fitted by least squares to (n,) entropies and rewards.

    H in nats. Raises ValueError where the entropies do not differ, or where there are
    none, so that any slope would do.
    Source: Cui et al. 2025, "The Entropy Mechanism of Reinforcement Learning for
    Reasoning Language Models", eq. 1.
    """
    x, y = entropy.detach().double().exp(), reward.detach().double()
    if len(x) == 0 or x.min() == x.max():
        raise ValueError("a line needs at least two different entropies")
    dx, dy = x - x.mean(), y - y.mean()
    slope = (dx * dy).sum() / dx.square().sum()
    return -slope.item(), (y.mean() - slope * x.mean()).item()
