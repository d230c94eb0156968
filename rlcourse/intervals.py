"""95 % intervals of means, over problems or over runs; nothing else in the library makes any.

Where one policy is measured, problems are the unit: completions of one problem are right or wrong
together. Near 0 or 1 the bootstrap over problems holds the truth much too seldom (lesson 11), so
there a share has Wilson's interval (lesson 15), which counts each problem once.
"""

from collections.abc import Sequence
from statistics import fmean, stdev

import torch

from rlcourse.algorithms.gsm8k import bootstrap_interval

# The 97.5 % point of t with n − 1 degrees of freedom, by n.
STUDENT_T = {2: 12.71, 3: 4.30, 4: 3.18, 5: 2.78, 6: 2.57, 7: 2.45, 8: 2.36, 9: 2.31, 10: 2.26}


def interval_of(scores: Sequence[float], share: bool = True) -> tuple[float, float]:
    """(low, high) of the mean of one score a problem, n of them; with `share` all are in 0 to 1."""
    values = torch.tensor(scores, dtype=torch.float64)
    n, mean = len(values), values.mean().item()
    if not share or n * min(mean, 1 - mean) >= 10:  # problems' worth of right and of wrong answers
        return bootstrap_interval(values)
    z = 1.96**2 / n
    half = (z * (mean * (1 - mean) + z / 4)) ** 0.5
    low, high = ((mean + z / 2 + side * half) / (1 + z) for side in (-1, 1))
    return max(0.0, low), min(1.0, high)


def interval_of_runs(values: Sequence[float]) -> tuple[float, float]:
    """(low, high) of the mean of n runs with different seeds: m ± t s / √n (Student 1908)."""
    n = len(values)
    half = STUDENT_T.get(n, 1.96 + 2.6 / (n - 1)) * stdev(values) / n**0.5
    return fmean(values) - half, fmean(values) + half
