"""pass@k of every problem, for every k."""

from collections.abc import Iterator
from dataclasses import replace
from math import comb, prod

import torch
from torch import Tensor

from rlcourse.algorithms.elicit_or_learn import pass_at_k_curve
from rlcourse.algorithms.evaluation import pass_at_k
from rlcourse.checks.calling import Case
from rlcourse.checks.cases import CaseSampler
from rlcourse.checks.exercise import Exercise, Mistake
from rlcourse.checks.sketch import Sketch


def _cases(draw: CaseSampler) -> Iterator[Case]:
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


_edit = Sketch(
    line_by_line, powers, any_right, single, all_wrong, all_right, summed_chances, unchecked
).edit


def _estimate(helper: str):
    return _edit("the estimate of one problem", "pass_at_k(n, c, k)", f"{helper}(n, c, k)")


EXERCISE = Exercise(
    reference=pass_at_k_curve,
    lesson="13_elicit_or_learn",
    section="One curve in place of one number",
    points=2,
    difficulty=1,
    minutes=6,
    cases=_cases,
    oracle=by_product,
    mistakes=(
        Mistake(
            "1 − (1 − c/n)^k for each problem",
            _estimate("powers"),
            "The power of an estimate is too low on average, and most of all where few are right: "
            "that is where the curves are compared. Use `pass_at_k`.",
        ),
        Mistake(
            "1 as soon as one completion is right, whatever k",
            _estimate("any_right"),
            "That is pass@n; with fewer tries the right one may not be drawn.",
        ),
        Mistake(
            "the share of right completions, whatever k",
            _estimate("single"),
            "That is pass@1. A curve needs each k.",
        ),
        Mistake(
            "the chance that all k are wrong",
            _estimate("all_wrong"),
            "pass@k is the complement.",
        ),
        Mistake(
            "the chance that all k are right",
            _estimate("all_right"),
            "One right one is enough.",
        ),
        Mistake(
            "k times pass@1, cut off at 1",
            _estimate("summed_chances"),
            "Chances do not add up: two right ones among k count once.",
        ),
        Mistake(
            "a curve that takes impossible numbers",
            _estimate("unchecked"),
            "Nobody can draw 16 of 8 completions. `pass_at_k` raises ValueError; let it.",
            telling=1,
        ),
        Mistake(
            "k and n exchanged",
            _edit(
                "the estimate of one problem",
                "pass_at_k(n, c, k)",
                "float(c >= n or k == n) * (c > 0)",
            ),
            "`pass_at_k(n, c, k)`: of n completions c are right, and k are drawn.",
        ),
        Mistake(
            "one curve, the mean over the problems",
            _edit("what is averaged", "return curve", "return curve.mean(0)"),
            "Keep a row for each problem: intervals and paired differences need them.",
        ),
        Mistake(
            "one number a problem, the mean over k",
            _edit("what is averaged", "return curve", "return curve.mean(1)"),
            "Each k is a question of its own, and a column.",
        ),
        Mistake(
            "a table with the problems as columns",
            _edit(
                "the layout", ".reshape(len(counts), len(ks))", ".reshape(len(counts), len(ks)).T"
            ),
            "(P, K): a row is a problem, a column a k.",
        ),
        Mistake(
            "the first whole numbers in place of the ks",
            _edit("the order of the ks", "for k in ks]", "for k in range(1, len(ks) + 1)]"),
            "Column j belongs to ks[j]: walk over `ks` itself.",
        ),
        Mistake(
            "the ks in rising order",
            _edit("the order of the ks", "for k in ks]", "for k in sorted(ks)]"),
            "Column j belongs to ks[j], in the order given.",
            telling=1,
        ),
        Mistake(
            "a table in percent",
            _edit("the unit", "return curve", "return 100 * curve"),
            "A probability lies between 0 and 1.",
        ),
    ),
    alternatives=(line_by_line, by_column, by_product),
    hints=(
        "You have `pass_at_k` for one problem and one k. What is asked for is a table of it.",
        "A row for each count, in it an entry for each k: two loops, or a comprehension in a "
        "comprehension. `counts.tolist()` gives whole Python numbers, which `comb` needs.",
        "With the reference's steps:\n\n"
        "    rows = [[pass_at_k(..., ..., ...) for k in ks] for c in counts.tolist()]\n"
        "    return torch.tensor(rows, dtype=torch.float64).reshape(len(counts), len(ks))",
    ),
)
