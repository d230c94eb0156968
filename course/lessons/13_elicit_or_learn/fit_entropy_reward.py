"""The line on which reward is bought with entropy."""

from collections.abc import Iterator
from dataclasses import replace
from math import e

import torch
from torch import Tensor

from rlcourse.algorithms.elicit_or_learn import fit_entropy_reward
from rlcourse.checks.declaring import Case, CaseSampler, Sketch, tensor


def cases(draw: CaseSampler) -> Iterator[Case]:
    def case(label: str, entropy: Tensor, reward: Tensor) -> Case:
        return Case(label, {"entropy": entropy, "reward": reward})

    worked = tensor([2.0, 1.5, 1.0]).log()
    yield case("worked: e^H of 2, 1.5 and 1", worked, tensor([0.2, 0.5, 0.6]))
    entropy = draw.uniform(draw.size(5, 8), low=0.05, high=1.2)
    yield case("on a line", entropy, 0.9 - 0.3 * entropy.exp())
    for label, size, scale in (
        ("a noisy run", draw.size(8, 12), 0.1),
        ("more noise than line", draw.size(6, 9), 0.6),
        ("few steps", 3, 0.2),
    ):
        falling = torch.linspace(1.4, 0.2, size, dtype=torch.float64)
        entropy = falling + draw.uniform(size, low=-0.15, high=0.15)
        yield case(label, entropy, 0.8 - 0.4 * entropy.exp() + draw.normal(size, scale=scale))
    entropy = draw.uniform(7, low=0.1, high=0.9)
    yield case("entropy that rises with the reward", entropy, 0.1 + 0.5 * entropy + draw.uniform(7))
    yield case("rewards below 0", draw.uniform(6), -2 - draw.uniform(6))
    yield case("two steps", tensor([0.9, 0.2]), tensor([0.1, 0.45]))
    yield case("large entropies", 3 + draw.uniform(6), draw.uniform(6))
    level = torch.full((5,), 0.3, dtype=torch.float64)
    close = level + 5e-4 * draw.uniform(5)
    yield case("entropies that hardly differ", close, 400 - 300 * close.exp())
    yield case("two that hardly differ", tensor([0.7, 0.7001]), draw.uniform(2))
    yield case("float32", draw.uniform(8).float(), draw.uniform(8).float())
    level = torch.full((4,), 0.3, dtype=torch.float64)
    yield replace(case("entropies all alike", level, draw.uniform(4)), raises=True)
    yield replace(case("one step", tensor([0.3]), tensor([0.5])), raises=True)
    yield replace(case("no steps", tensor([]), tensor([])), raises=True)


def line_by_line(entropy, reward):
    x, y = entropy.double().exp(), reward.double()
    if len(x) < 2 or bool((x == x[0]).all()):
        raise ValueError("every slope fits a single entropy")
    dx, dy = x - x.mean(), y - y.mean()
    slope = (dx * dy).sum() / (dx * dx).sum()
    a = -slope
    b = y.mean() - slope * x.mean()
    return float(a), float(b)


def by_least_squares(entropy, reward):
    x, y = entropy.double().exp(), reward.double()
    if len(set(x.tolist())) < 2:
        raise ValueError("no line")
    table = torch.stack([-x, torch.ones_like(x)], dim=1)
    a, b = torch.linalg.lstsq(table, y).solution.tolist()
    return a, b


def by_sums(entropy, reward):
    """The normal equations, number by number."""
    points = [(e**h, r) for h, r in zip(entropy.tolist(), reward.tolist(), strict=True)]
    mean = sum(x for x, _ in points) / max(1, len(points))
    above = sum((x - mean) * r for x, r in points)
    below = sum((x - mean) ** 2 for x, _ in points)
    if below < 1e-24:  # all alike, but for rounding
        raise ValueError("no line")
    return -above / below, sum(r for _, r in points) / len(points) - above / below * mean


def _well_apart(entropy, reward):
    x = entropy.double().exp()
    if len(x) == 0 or x.max() - x.min() < 0.05:
        raise ValueError("hardly any spread")
    return fit_entropy_reward(entropy, reward)


def _always(entropy, reward):
    try:
        return fit_entropy_reward(entropy, reward)
    except ValueError:
        return 0.0, float(reward.double().mean())


sketch = Sketch(line_by_line)
alternatives = (by_least_squares, by_sums)
oracle = by_least_squares
