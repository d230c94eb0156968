"""The chance that one of k attempts is right."""

import math
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from itertools import combinations

import torch
from torch import Tensor

from rlcourse.algorithms.evaluation import pass_at_k
from rlcourse.checks.calling import Case
from rlcourse.checks.cases import CaseSampler
from rlcourse.checks.exercise import Exercise, Mistake
from rlcourse.checks.sketch import Sketch


def _cases(draw: CaseSampler) -> Iterator[Case]:
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


_edit = Sketch(in_two_lines).alone
_missed = partial(_edit, "math.comb(n - c, k) / math.comb(n, k)")
_number_of_draws = partial(_edit, "math.comb(n, k)")
_result = partial(_edit, "1 - missed")
_in_product = Sketch(by_product, f, log_f).alone
_product = partial(_in_product, "math.prod(1.0 - k / i for i in range(n - c + 1, n + 1))")
_factors = partial(_in_product, "n - c + 1, n + 1")


def _one_by_one(n, c, k):
    """Draws one after the other: each must miss, given that those before it did."""
    _possible(n, c, k)
    miss = 1.0
    for i in range(k):
        miss *= max(n - c - i, 0) / (n - i)
    return 1 - miss


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


EXERCISE = Exercise(
    reference=pass_at_k,
    lesson="11_gsm8k",
    section="One right in k tries",
    points=2,
    difficulty=2,
    minutes=8,
    cases=_cases,
    oracle=_by_listing,
    mistakes=(
        Mistake(
            "1 − (1 − c/n)^k, which draws the same completion more than once",
            _missed("(1 - c / n) ** k"),
            "c/n is only an estimate, and the power of an estimate is too low on average: "
            "draw k *different* ones of the n.",
        ),
        Mistake(
            "1 as soon as any completion is right, as with k = n",
            _result("float(c > 0)"),
            "That is pass@n. With fewer tries the right one may be among those not drawn. (A "
            "division by `//` has the same result.)",
        ),
        Mistake(
            "c/n, the chance for a single try",
            _result("c / n"),
            "With k tries there are k chances: what is the probability that *all* miss?",
        ),
        Mistake(
            "the probability that all k are right",
            _result("math.comb(c, k) / math.comb(n, k)"),
            "One right one is enough: 1 minus the probability that all k are *wrong*.",
        ),
        Mistake(
            "the probability that not all k are right",
            _missed("math.comb(c, k) / math.comb(n, k)"),
            "The complement of “at least one right” is “all k wrong”, and there are n − c "
            "wrong ones to choose from.",
        ),
        Mistake(
            "the probability that all k are wrong",
            _result("missed"),
            "That is the complement: subtract it from 1.",
        ),
        Mistake(
            "k · c/n, cut off at 1",
            _result("min(1.0, k * c / n)"),
            "Adding the chances counts twice the draws in which two are right.",
        ),
        Mistake(
            "the probability that exactly one of the k is right",
            _result("c * math.comb(n - c, k - 1) / math.comb(n, k)"),
            "Two right ones are welcome, too: at least one.",
        ),
        Mistake(
            "n^k for the number of draws",
            _number_of_draws("n**k"),
            "k different completions, in no order, can be drawn in C(n, k) ways.",
        ),
        Mistake(
            "draws with order below and without order above",
            _number_of_draws("math.perm(n, k)"),
            "Count both in the same way: C(n−c, k) of the C(n, k) draws miss.",
        ),
        Mistake(
            "`comb` with its arguments exchanged",
            _missed("math.comb(k, n - c) / math.comb(k, n)"),
            "`comb(n, k)` is the number of ways to choose k of n; the larger comes first.",
        ),
        Mistake(
            "factorials as floats, which overflow from 171 on",
            _product("f(n - c) * f(n - k) / (f(n - c - k) * f(n))"),
            "171! is larger than any float. `math.comb` computes with whole numbers of any "
            "size, and Python divides them exactly.",
        ),
        Mistake(
            "log-gammas in single precision",
            _product("(log_f(n - c) + log_f(n - k) - log_f(n - c - k) - log_f(n)).exp().item()"),
            "The logarithm of 200! is 863, and float32 keeps seven digits of it: the fourth "
            "digit of the result is noise.",
        ),
        Mistake(
            "a product that begins and ends one too early",
            _factors("n - c, n", "return 1.0", "return 1"),
            "In Codex's product the factors run from n − c + 1 to n, both included.",
        ),
        Mistake(
            "a product without its last factor",
            _factors("n - c + 1, n"),
            "The factors 1 − k/i run from i = n − c + 1 to n, both included: `range` stops "
            "one before its end.",
        ),
        Mistake(
            "k − 1 tries",
            _missed("math.prod((n - c - i) / (n - i) for i in range(k - 1))"),
            "There is a factor for each try, the first and the last included.",
        ),
        Mistake("percent", _result("100 * (1 - missed)"), "A probability lies between 0 and 1."),
        Mistake(
            "0 where there are fewer wrong ones than tries",
            _in_product("missed = 0.0", "missed = 1.0"),
            "Who draws more than all the wrong ones has drawn a right one: 1.",
        ),
        Mistake(
            "a product with one factor too many",
            _factors("n - c, n + 1"),
            "There is a factor for each try: k of them.",
        ),
        Mistake(
            "a result where ValueError is asked for",
            _edit(
                "_possible(n, c, k)", "if not (0 <= c <= n and 1 <= k <= n):\n        return 0.0"
            ),
            "Nobody can draw five of four completions: a number in place of an error hides that "
            "the counts are wrong.",
        ),
    ),
    alternatives=(by_product, _one_by_one, _by_log_gamma, in_two_lines),
    hints=(
        "What is the probability that all k are wrong?",
        "Put the n completions on the table, turn them over, and draw k different ones. All wrong "
        "means: all k from the n − c wrong ones. In how many ways, of how many? `math.comb`.",
        "One line:\n\n    return 1.0 - comb(n - c, ...) / comb(n, ...)",
    ),
)
