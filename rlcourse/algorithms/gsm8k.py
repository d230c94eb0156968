"""Lesson 11: numbers one can trust.

A model that answers right once in k tries is not a model that is right; a score
from 100 problems is not a score. These functions say how often (pass@k), with which
final answer (majority vote) and how surely (bootstrap interval).
"""

from collections import Counter
from collections.abc import Sequence
from math import comb

import torch
from torch import Tensor


def pass_at_k(n: int, c: int, k: int) -> float:
    """Probability that at least one of k completions is right.

    Estimated from n completions of which c are right.

    1 − C(n−c, k) / C(n, k), unbiased, unlike 1 − (1 − c/n)^k. Raises ValueError
    unless 0 ≤ c ≤ n and 1 ≤ k ≤ n.
    Source: Chen et al. 2021 (Codex), eq. 1.
    """
    if not (0 <= c <= n and 1 <= k <= n):
        raise ValueError(
            f"pass_at_k needs 0 <= c <= n and 1 <= k <= n; got n={n}, c={c}, k={k}"
        )
    return 1.0 - comb(n - c, k) / comb(n, k)


def majority_vote(answers: Sequence[str | None]) -> str | None:
    """The commonest answer; None votes do not count, and None means no votes.

    Of equally common answers the first given wins.

    Source: Wang et al. 2023, "Self-Consistency", section 2.
    """
    votes = Counter(answer for answer in answers if answer is not None)
    return votes.most_common(1)[0][0] if votes else None


def bootstrap_interval(
    correct: Tensor, level: float = 0.95, resamples: int = 2000, seed: int = 0
) -> tuple[float, float]:
    """Percentile bootstrap interval of the mean of n scores: (n,) → (low, high).

    Each resample draws n scores with replacement; the interval holds the middle
    `level` of their means. The same `seed` gives the same interval, and torch's own
    generator is left alone. Raises ValueError for an empty tensor.
    Source: Efron 1979.
    """
    if correct.numel() == 0:
        raise ValueError("bootstrap_interval needs at least one score")
    generator = torch.Generator().manual_seed(seed)
    draws = torch.randint(len(correct), (resamples, len(correct)), generator=generator)
    means = correct.detach().cpu().double()[draws].mean(dim=1)
    tails = torch.tensor([(1 - level) / 2, (1 + level) / 2], dtype=torch.float64)
    low, high = means.quantile(tails).tolist()
    return low, high
