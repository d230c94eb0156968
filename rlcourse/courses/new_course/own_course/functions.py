"""The functions of this course's own exercises, as they should be."""

import torch
from torch import Tensor


def explained_variance(values: Tensor, returns: Tensor) -> Tensor:
    """The share of the returns' variance that a critic's values explain, as a scalar.

    1 − Var(returns − values) / Var(returns), each variance over all N numbers, divided by N.
    `values` and `returns` are (N,). If the returns are all equal, there is nothing to explain,
    and it is 0.
    Source: OpenAI Baselines, `common/math_util.py` (where equal returns give NaN).
    """
    unexplained = (returns - values).var(correction=0)
    total = returns.var(correction=0)
    return torch.where(total > 0, 1 - unexplained / total, torch.zeros_like(total))
