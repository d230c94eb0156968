"""Lesson 15: rewards from judges that err, and from rubrics of several items.

A judge says "right" to some wrong answers and "wrong" to some right ones. An audit of
a few verdicts measures both rates; the two rates say what is left of the gradient.
A rubric adds up several verdicts, and how they are scaled decides who is heard.
"""

import torch
from torch import Tensor

from rlcourse.algorithms.grpo import group_normalized_advantages


def error_rates(verdicts: Tensor, truth: Tensor, z: float = 1.96) -> Tensor:
    """A judge's two error rates, from n audited texts: (n,), (n,) → (2, 3), float64.

    `verdicts` and `truth` are 0 or 1.
    Row 0 is the rate of false positives: the share of the wrong texts (truth 0) that
    the judge passed. Row 1 is that of false negatives: the share of the right ones that
    it failed. The columns are the share and the two ends of Wilson's interval, the
    rates p with |share − p| ≤ z √(p(1 − p)/m) for m texts of that kind. Raises
    ValueError where the audit has no wrong text, or no right one.
    Source: Wilson 1927, "Probable Inference, the Law of Succession, and Statistical
    Inference".
    """
    verdicts, truth = verdicts.double(), truth.bool()
    rows = []
    for errors in (verdicts[~truth], 1 - verdicts[truth]):
        m = len(errors)
        if m == 0:
            raise ValueError("an audit needs right texts and wrong ones")
        share = errors.mean()
        center = (share + z**2 / (2 * m)) / (1 + z**2 / m)
        spread = share * (1 - share) / m + z**2 / (4 * m**2)
        half = z * spread.sqrt() / (1 + z**2 / m)
        rows.append(torch.stack([share, center - half, center + half]))
    return torch.stack(rows)


def unbiased_rewards(
    verdicts: Tensor, false_positive: float, false_negative: float
) -> Tensor:
    """(verdict − fp)/(1 − fp − fn): the expectation is the truth: (N,) → (N,).

    A right answer (1) is failed with probability fn, a wrong one (0) passed with
    probability fp. A single reward may lie outside of 0 to 1. Raises ValueError where
    fp + fn is 1 or more: such a verdict holds no truth, or its opposite.
    Source: Natarajan et al. 2013, "Learning with Noisy Labels"; for rewards, Wang et
    al. 2020, "Reinforcement Learning with Perturbed Rewards".
    """
    if false_positive + false_negative >= 1:
        raise ValueError("fp + fn must be below 1: this judge knows nothing")
    return (verdicts - false_positive) / (1 - false_positive - false_negative)


def rubric_scores(verdicts: Tensor, weights: Tensor, essential: Tensor) -> Tensor:
    """The weighted share of a rubric's items that hold: (N, K), (K,), (K,) → (N,).

    `verdicts` are 0 or 1. The weights are not negative, and need not add up to 1. A
    text that fails an `essential` item (bool) scores 0, whatever else holds. Raises
    ValueError where the weights add up to 0.
    Source: Gunjal et al. 2025, "Rubrics as Rewards", eq. 1; the essential items are
    that paper's category, made a condition.
    """
    if weights.sum() <= 0:
        raise ValueError("the weights of a rubric must add up to more than 0")
    score = verdicts.to(weights.dtype) @ weights / weights.sum()
    passed = (verdicts.bool() | ~essential).all(dim=1)
    return score * passed


def decoupled_advantages(
    parts: Tensor, weights: Tensor, group_size: int, eps: float = 1e-4
) -> Tensor:
    """GDPO: parts normalized within their group, then added: (N, K), (K,) → (N,).

    Every part of the reward becomes an advantage of its own by
    `group_normalized_advantages`, with the same eps. Their weighted sum is shifted by
    its mean over the whole batch and divided by its sample standard deviation there,
    plus eps. A batch of one has advantage 0.
    Source: Liu et al. 2026, "GDPO", section 3.
    """
    columns = [group_normalized_advantages(p, group_size, eps) for p in parts.T]
    total = torch.stack(columns, dim=1) @ weights
    std = total.std(correction=min(1, len(total) - 1))
    return (total - total.mean()) / (std + eps)
