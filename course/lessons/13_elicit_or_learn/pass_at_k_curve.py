"""pass@k of every problem, for every k."""

from collections.abc import Iterator
from dataclasses import replace
from math import comb, prod

import torch
from torch import Tensor

from rlcourse.algorithms.gsm8k import pass_at_k
from rlcourse.checks.declaring import Case, CaseSampler, Sketch


def cases(draw: CaseSampler) -> Iterator[Case]:
    def case(label: str, counts, n: int, ks) -> Case:
        return Case(label, {"counts": torch.as_tensor(counts), "n": n, "ks": ks})

    yield case("worked: none, two and six of eight right", [0, 2, 6], 8, (1, 4))
    yield case("one problem", [3], 12, (1, 2, 4, 8))
    yield case("one k", [1, 5, 2, 4], 9, (3,))
    problems = draw.size(4, 6)
    yield case("more problems than ks", 1 + draw.integers(problems, high=6), 16, (2, 5, 8))
    yield case("more ks than problems", 1 + draw.integers(2, high=5), 20, (1, 2, 3, 5, 8, 16))
    yield case("as many problems as ks", 1 + draw.integers(3, high=7), 12, (1, 3, 6))
    yield case("ks out of order", 1 + draw.integers(4, high=3), 16, (8, 1, 4))
    yield case("ks as a list", [1, 2, 3], 10, [2, 4])
    yield case("k as large as n", [0, 1, 4, 6], 6, (2, 6))
    yield case("hard problems, 128 samples", [0, 1, 2, 1, 0], 128, (1, 8, 64, 128))
    yield replace(case("no problems", torch.zeros(0, dtype=torch.long), 8, (1, 2)), edge=True)
    yield replace(case("a k above n", [1, 2], 8, (1, 16)), raises=True)
    yield replace(case("more right than sampled", [3, 9], 8, (1, 2)), raises=True)


def _possible(n, c, k):
    if not (0 <= c <= n and 1 <= k <= n):
        raise ValueError("there is no such draw")


def powers(n, c, k):
    _possible(n, c, k)
    return 1 - (1 - c / n) ** k


def any_right(n, c, k):
    _possible(n, c, k)
    return float(c > 0)


def single(n, c, k):
    _possible(n, c, k)
    return c / n


def all_wrong(n, c, k):
    _possible(n, c, k)
    return comb(n - c, k) / comb(n, k)


def all_right(n, c, k):
    _possible(n, c, k)
    return comb(c, k) / comb(n, k)


def summed_chances(n, c, k):
    _possible(n, c, k)
    return min(1.0, k * c / n)


def unchecked(n, c, k):
    return 1 - (comb(n - c, k) / comb(n, k) if k <= n and c <= n else 0.0)


def line_by_line(counts, n, ks):
    rows = [[pass_at_k(n, c, k) for k in ks] for c in counts.tolist()]
    curve = torch.tensor(rows, dtype=torch.float64).reshape(len(counts), len(ks))
    return curve


def by_column(counts, n, ks):
    columns = [[pass_at_k(n, int(c), k) for c in counts] for k in ks]
    return torch.tensor(columns, dtype=torch.float64).reshape(len(ks), len(counts)).T


def by_product(counts: Tensor, n: int, ks):
    """Codex's product, written into a table."""
    curve = torch.ones(len(counts), len(ks), dtype=torch.float64)
    for i, c in enumerate(counts.tolist()):
        for j, k in enumerate(ks):
            _possible(n, c, k)
            if n - c >= k:
                curve[i, j] -= prod(1 - k / m for m in range(n - c + 1, n + 1))
    return curve


sketch = Sketch(
    line_by_line, powers, any_right, single, all_wrong, all_right, summed_chances, unchecked
)
alternatives = (by_column, by_product)
oracle = by_product
