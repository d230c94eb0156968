"""Which constant baseline makes a gradient's noise least."""

from collections.abc import Iterator

import torch
from torch import Tensor

from rlcourse.checks.declaring import Case, CaseSampler, Sketch, tensor


def cases(draw: CaseSampler) -> Iterator[Case]:
    def case(label: str, rewards: Tensor, norms: Tensor) -> Case:
        return Case(label, {"rewards": rewards, "score_norms_squared": norms})

    def norms(n: int) -> Tensor:
        return draw.uniform(n, low=0.2, high=4.0)

    yield case("worked: rewards 1 and 0, squared norms 1 and 3", tensor([1.0, 0]), tensor([1.0, 3]))
    n = draw.size(4, 7)
    yield case("equal norms: the mean reward", draw.rewards(n), torch.full((n,), 2.0).double())
    yield case("rewards of 0 and 1", draw.binary_rewards(n), norms(n))
    yield case("rewards of any sign", draw.rewards(n), norms(n))
    yield case("rewards far from 0", 50 + draw.rewards(n), norms(n))
    yield case("equal rewards", draw.rewards(1).repeat(n), norms(n))
    yield case("every reward below 0", -draw.rewards(n).abs(), norms(n))
    one_pulls = torch.zeros(n).double()
    one_pulls[draw.integer(0, n - 1)] = 2.5
    yield case("only one sample pulls", draw.rewards(n), one_pulls)
    yield case("norms of very different size", draw.rewards(n), norms(n) ** 6)
    yield case("one sample", draw.rewards(1), norms(1))
    yield case("short scores", draw.rewards(n), 0.01 * norms(n))
    yield case("long scores", draw.rewards(n), 100 * norms(n))
    yield case("no sample pulls", draw.rewards(n), torch.zeros(n).double())
    yield case("float32", draw.rewards(n).float(), norms(n).float())


def _best_by_loop(rewards, score_norms_squared):
    above, below = 0.0, 0.0
    for reward, pull in zip(rewards.tolist(), score_norms_squared.tolist(), strict=True):
        above, below = above + pull * reward, below + pull
    return torch.tensor(above / below if below else 0.0, dtype=rewards.dtype)


def _best_by_least_squares(rewards, score_norms_squared):
    """The b that minimizes Σ ‖score‖² (R − b)², as a regression through the origin."""
    pull = score_norms_squared.sqrt()
    return torch.linalg.pinv(pull[:, None]).squeeze(0) @ (pull * rewards)


def line_by_line(rewards, score_norms_squared):
    weights = score_norms_squared
    above = (weights * rewards).sum()
    below = weights.sum()
    return ratio(above, below)


def ratio(above: Tensor, below: Tensor) -> Tensor:
    return torch.where(below == 0, torch.zeros_like(above), above / below)


def slope(rewards, weights, flat):
    """Of weights · rewards over weights; `flat` where all weights are equal."""
    apart = weights - weights.mean()
    variance = apart.square().mean()
    covariance = (apart * (weights * rewards)).mean()
    return torch.where(variance == 0, flat, covariance / variance)


sketch = Sketch(line_by_line, ratio, slope)
alternatives = (_best_by_loop, _best_by_least_squares)
