"""The chance that one of k attempts is right."""

import math
from collections.abc import Iterator
from dataclasses import replace
from itertools import combinations

import torch

from rlcourse.algorithms.evaluation import pass_at_k
from rlcourse.checks.calling import Case
from rlcourse.checks.cases import CaseSampler
from rlcourse.checks.exercise import Exercise, Mistake


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


def _guarded(*mistakes: Mistake) -> tuple[Mistake, ...]:
    """With the ValueError, so that each is only the mistake that it is meant to be."""
    return tuple(replace(m, implementation=_with_guard(m.implementation)) for m in mistakes)


def _with_guard(implementation):
    def checked(n, c, k):
        _possible(n, c, k)
        return implementation(n, c, k)

    return checked


def _unguarded(n, c, k):
    try:
        return pass_at_k(n, c, k)
    except ValueError:
        return 0.0


def _biased(n, c, k):
    return 1 - (1 - c / n) ** k


def _any(n, c, k):
    return float(c > 0)


def _accuracy(n, c, k):
    return c / n


def _all_right(n, c, k):
    return math.comb(c, k) / math.comb(n, k)


def _not_all_right(n, c, k):
    return 1 - math.comb(c, k) / math.comb(n, k)


def _none_right(n, c, k):
    return math.comb(n - c, k) / math.comb(n, k)


def _union_bound(n, c, k):
    return min(1.0, k * c / n)


def _exactly_one(n, c, k):
    return c * math.comb(n - c, k - 1) / math.comb(n, k)


def _chosen_from_all(n, c, k):
    return 1 - math.comb(n - c, k) / n**k


def _with_order(n, c, k):
    return 1 - math.comb(n - c, k) / math.perm(n, k)


def _swapped(n, c, k):
    return 1 - math.comb(k, n - c) / math.comb(k, n)


def _factorials(n, c, k):
    if n - c < k:
        return 1.0
    f = lambda m: math.gamma(m + 1.0)  # noqa: E731
    return 1 - f(n - c) * f(n - k) / (f(n - c - k) * f(n))


def _single_precision(n, c, k):
    if n - c < k:
        return 1.0
    f = lambda m: torch.lgamma(torch.tensor(m + 1.0))  # noqa: E731
    return 1 - (f(n - c) + f(n - k) - f(n - c - k) - f(n)).exp().item()


def _off_by_one(n, c, k):
    if n - c < k:
        return 1.0
    return 1 - math.prod(1 - k / i for i in range(n - c, n))


def _last_factor_missing(n, c, k):
    if n - c < k:
        return 1.0
    return 1.0 - math.prod(1 - k / i for i in range(n - c + 1, n))


def _one_factor_short(n, c, k):
    return 1 - math.prod((n - c - i) / (n - i) for i in range(k - 1))


def _one_factor_more(n, c, k):
    if n - c < k:
        return 1.0
    return 1 - math.prod(1 - k / i for i in range(n - c, n + 1))


def _percent(n, c, k):
    return 100 * pass_at_k(n, c, k)


def _zero_where_certain(n, c, k):
    return 0.0 if n - c < k else pass_at_k(n, c, k)


def _by_product(n, c, k):
    """As the Codex paper's own code has it."""
    _possible(n, c, k)
    if n - c < k:
        return 1.0
    return 1.0 - math.prod(1.0 - k / i for i in range(n - c + 1, n + 1))


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
        *_guarded(
            Mistake(
                "1 − (1 − c/n)^k, which draws the same completion more than once",
                _biased,
                "c/n is only an estimate, and the power of an estimate is too low on average: "
                "draw k *different* ones of the n.",
            ),
            Mistake(
                "1 as soon as any completion is right, as with k = n",
                _any,
                "That is pass@n. With fewer tries the right one may be among those not drawn. (A "
                "division by `//` has the same result.)",
            ),
            Mistake(
                "c/n, the chance for a single try",
                _accuracy,
                "With k tries there are k chances: what is the probability that *all* miss?",
            ),
            Mistake(
                "the probability that all k are right",
                _all_right,
                "One right one is enough: 1 minus the probability that all k are *wrong*.",
            ),
            Mistake(
                "the probability that not all k are right",
                _not_all_right,
                "The complement of “at least one right” is “all k wrong”, and there are n − c "
                "wrong ones to choose from.",
            ),
            Mistake(
                "the probability that all k are wrong",
                _none_right,
                "That is the complement: subtract it from 1.",
            ),
            Mistake(
                "k · c/n, cut off at 1",
                _union_bound,
                "Adding the chances counts twice the draws in which two are right.",
            ),
            Mistake(
                "the probability that exactly one of the k is right",
                _exactly_one,
                "Two right ones are welcome, too: at least one.",
            ),
            Mistake(
                "n^k for the number of draws",
                _chosen_from_all,
                "k different completions, in no order, can be drawn in C(n, k) ways.",
            ),
            Mistake(
                "draws with order below and without order above",
                _with_order,
                "Count both in the same way: C(n−c, k) of the C(n, k) draws miss.",
            ),
            Mistake(
                "`comb` with its arguments exchanged",
                _swapped,
                "`comb(n, k)` is the number of ways to choose k of n; the larger comes first.",
            ),
            Mistake(
                "factorials as floats, which overflow from 171 on",
                _factorials,
                "171! is larger than any float. `math.comb` computes with whole numbers of any "
                "size, and Python divides them exactly.",
            ),
            Mistake(
                "log-gammas in single precision",
                _single_precision,
                "The logarithm of 200! is 863, and float32 keeps seven digits of it: the fourth "
                "digit of the result is noise.",
            ),
            Mistake(
                "a product that begins and ends one too early",
                _off_by_one,
                "In Codex's product the factors run from n − c + 1 to n, both included.",
            ),
            Mistake(
                "a product without its last factor",
                _last_factor_missing,
                "The factors 1 − k/i run from i = n − c + 1 to n, both included: `range` stops "
                "one before its end.",
            ),
            Mistake(
                "k − 1 tries",
                _one_factor_short,
                "There is a factor for each try, the first and the last included.",
            ),
            Mistake("percent", _percent, "A probability lies between 0 and 1."),
            Mistake(
                "0 where there are fewer wrong ones than tries",
                _zero_where_certain,
                "Who draws more than all the wrong ones has drawn a right one: 1.",
            ),
            Mistake(
                "a product with one factor too many",
                _one_factor_more,
                "There is a factor for each try: k of them.",
            ),
        ),
        Mistake(
            "a result where ValueError is asked for",
            _unguarded,
            "Nobody can draw five of four completions: a number in place of an error hides that "
            "the counts are wrong.",
        ),
    ),
    alternatives=(_by_product, _one_by_one, _by_log_gamma),
    hints=(
        "What is the probability that all k are wrong?",
        "Put the n completions on the table, turn them over, and draw k different ones. All wrong "
        "means: all k from the n − c wrong ones. In how many ways, of how many? `math.comb`.",
        "One line:\n\n    return 1.0 - comb(n - c, ...) / comb(n, ...)",
    ),
)
