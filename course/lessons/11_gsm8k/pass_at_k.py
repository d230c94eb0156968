"""The chance that one of k attempts is right."""

import math
from collections.abc import Iterator
from dataclasses import replace
from itertools import combinations

import torch
from torch import Tensor

from rlcourse.checks.declaring import Case, CaseSampler, Sketch


def cases(draw: CaseSampler) -> Iterator[Case]:
    def case(label: str, n: int, c: int, k: int) -> Case:
        return Case(label, {"n": n, "c": c, "k": k})

    yield case("worked: two of eight, four tries", 8, 2, 4)
    yield case("two of eight, one try", 8, 2, 1)
    yield case("one of eight, two tries", 8, 1, 2)
    yield case("none right", 8, 0, 4)
    yield case("all right", 8, 8, 3)
    yield case("a single completion, right", 1, 1, 1)
    yield case("a single completion, wrong", 1, 0, 1)
    yield case("as many tries as completions", 6, 1, 6)
    yield case("fewer wrong ones than tries", 8, 5, 4)
    yield case("as many wrong ones as tries", 8, 4, 4)
    n = draw.size(9, 14)
    yield case("some right", n, draw.integer(2, 4), draw.integer(2, 4))
    yield case("many right", n, n - 5, 3)
    yield case("as many right ones as tries", n, 3, 3)
    yield case("two hundred completions", 200, draw.integer(3, 9), 100)
    yield case("two hundred completions, ten tries", 200, draw.integer(3, 30), 10)
    yield case("a thousand completions", 1000, draw.integer(2, 5), 400)
    impossible = {
        "no try": (8, 2, 0),
        "more tries than completions": (4, 2, 5),
        "more right ones than completions": (8, 9, 1),
        "less than none right": (8, -1, 2),
    }
    for label, numbers in impossible.items():
        yield replace(case(label, *numbers), raises=True)


def _possible(n: int, c: int, k: int) -> None:
    if not (0 <= c <= n and 1 <= k <= n):
        raise ValueError("there is no such draw")


def in_two_lines(n, c, k):
    _possible(n, c, k)
    missed = math.comb(n - c, k) / math.comb(n, k)
    return 1 - missed


def by_product(n, c, k):
    """As the Codex paper's own code has it."""
    _possible(n, c, k)
    missed = 0.0
    if n - c >= k:
        missed = math.prod(1.0 - k / i for i in range(n - c + 1, n + 1))
    return 1.0 - missed


def f(m: int) -> float:
    """The factorial, as a float."""
    return math.gamma(m + 1.0)


def log_f(m: int) -> Tensor:
    return torch.lgamma(torch.tensor(m + 1.0))


_in_product = Sketch(by_product, f, log_f).alone


def _by_log_gamma(n, c, k):
    _possible(n, c, k)
    if n - c < k:
        return 1.0
    log = math.lgamma(n - c + 1) + math.lgamma(n - k + 1)
    return -math.expm1(log - math.lgamma(n - c - k + 1) - math.lgamma(n + 1))


def _by_listing(n, c, k):
    """Every choice of k of the n, counted where there are few, else by the sum over right ones."""
    _possible(n, c, k)
    if n <= 14:
        choices = list(combinations([True] * c + [False] * (n - c), k))
        return sum(map(any, choices)) / len(choices)
    hits = sum(math.comb(c, r) * math.comb(n - c, k - r) for r in range(1, min(c, k) + 1))
    return hits / math.comb(n, k)


sketch = Sketch(in_two_lines)
alternatives = (by_product, _by_log_gamma)
oracle = _by_listing
