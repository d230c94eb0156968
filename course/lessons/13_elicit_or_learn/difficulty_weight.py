"""Who gets the gradient: the expected weight of a problem, by how often it is solved."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from math import comb

import torch
from torch import Tensor

from rlcourse.algorithms.elicit_or_learn import difficulty_weight
from rlcourse.checks.declaring import Case, CaseSampler, Sketch, tensor

METHODS = ("mean", "std", "maxrl")


def cases(draw: CaseSampler) -> Iterator[Case]:
    def case(label: str, p: Tensor, group_size: int, method: str) -> Case:
        return Case(label, {"p": p, "group_size": group_size, "method": method})

    for method in METHODS:
        yield case(f"worked: groups of two, {method}", tensor([0.5, 0.1]), 2, method)
        size = draw.size(3, 5)
        yield case(
            f"groups of {size}, {method}", draw.uniform(4, low=0.05, high=0.95), size, method
        )
        yield case(f"groups of 8, {method}", draw.uniform(6, low=0.05, high=0.95), 8, method)
        yield case(f"hard problems, {method}", tensor([0.01, 0.03]), 6, method)
        yield case(f"easy problems, {method}", tensor([0.9, 0.99]), 6, method)
        yield case(f"never and always solved, {method}", tensor([0.0, 1.0, 0.4]), 4, method)
        yield case(f"one problem, {method}", draw.uniform(1, low=0.2, high=0.8), 7, method)
    yield case("as many problems as completions", draw.uniform(5, low=0.1, high=0.9), 5, "std")
    yield case("float32", draw.uniform(5, low=0.1, high=0.9).float(), 5, "maxrl")
    yield replace(case("a method that does not exist", tensor([0.5]), 4, "median"), raises=True)


def line_by_line(p, group_size, method):
    if method not in ("mean", "std", "maxrl"):
        raise ValueError(method)
    counts = torch.arange(group_size + 1).to(p.dtype)
    q = counts / group_size
    ways = torch.tensor([comb(group_size, k) for k in range(group_size + 1)]).to(p.dtype)
    chance = ways * p[:, None] ** counts * (1 - p[:, None]) ** (group_size - counts)
    signal = q * (1 - q)
    std = (signal * group_size / (group_size - 1)).sqrt()
    divisor = {"mean": torch.ones_like(q), "std": std, "maxrl": q}[method]
    weight = torch.where(signal > 0, signal / divisor, 0)
    result = (chance * weight).sum(1)
    return result


def by_listing(p, group_size, method):
    """All 2^G groups, each with the advantages that the method gives it."""
    if method not in METHODS:
        raise ValueError(method)
    total = torch.zeros_like(p)
    for outcome in product((0.0, 1.0), repeat=group_size):
        r = torch.tensor(outcome, dtype=p.dtype)
        if r.min() == r.max():
            continue
        scale = {"mean": torch.ones(()), "std": r.std(), "maxrl": r.mean()}[method]
        advantages = (r - r.mean()) / scale
        chance = torch.where(r.bool(), p[:, None], 1 - p[:, None]).prod(1)
        total = total + chance * (advantages * r).mean()
    return total


def _share_is_p(sample, guarded):
    """The formulas of an infinite group, and perhaps what a finite one needs."""

    def weight(p, group_size, method):
        std = (p * (1 - p)).sqrt() * ((group_size - 1) / group_size if sample else 1) ** 0.5
        maxrl = (1 - p) * (p > 0) if guarded else 1 - p
        formulas = {"mean": p * (1 - p), "std": std, "maxrl": maxrl}
        if method not in formulas:
            raise ValueError(method)
        return formulas[method]

    return weight


_limit = _share_is_p(sample=False, guarded=False)


def _any_method(p, group_size, method):
    return difficulty_weight(p, group_size, method if method in METHODS else "mean")


sketch = Sketch(line_by_line)
alternatives = (by_listing,)
oracle = by_listing
