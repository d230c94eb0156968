"""Facts about a wrong result: few, true of every case that was seen, and tried on others."""

import math
from itertools import product

import pytest
import torch

from rlcourse import check
from rlcourse.algorithms import pass_at_k
from rlcourse.checks.asking.case import Case
from rlcourse.checks.judging.comparing import FEW, Tolerance
from rlcourse.checks.telling.diagnose import DIFFER, MOST_FACTS
from rlcourse.checks.telling.patterns import Pair, explain
from rlcourse.checks.telling.places import suspected


def test_an_argument_on_which_it_depends_is_told(tmp_path, monkeypatch):
    monkeypatch.setenv("RLCOURSE_HOME", str(tmp_path))

    def token_logprobs(logits, tokens, temperature=1.0):
        chosen = logits[:, :-1].gather(-1, tokens[:, 1:, None]).squeeze(-1)
        return chosen - (logits[:, :-1] / temperature).logsumexp(-1)

    message = check(token_logprobs, seed=0).message
    assert "wrong only where `temperature` is not 1.0: with `temperature=1.0`, the" in message
    assert DIFFER not in message


def test_an_argument_is_told_only_if_the_other_value_makes_it_right():
    cases = tuple(Case("", {"x": torch.zeros(2), "how": how}) for how in ("sum", "mean") * 3)
    place = suspected(cases, [1, 3, 5], {"how": "sum"})
    assert "`how` is 'mean'" in place.sentence(lambda case: case.arguments["how"] == "sum")
    assert place.sentence(lambda case: False) is None
    assert suspected(cases, [0, 1, 3], {"how": "sum"}) is None  # each value is wrong somewhere


def test_a_default_counts_as_a_value_that_is_given():
    cases = (*(Case("", {"x": i}) for i in range(3)), *(Case("", {"x": i, "k": 2}) for i in (3, 4)))
    assert suspected(cases, [3, 4], {"k": 1}).property.words == "`k` is 2"
    cases = (
        *(Case("", {"x": i}) for i in (0, 1)),
        *(Case("", {"x": i, "k": 2}) for i in (2, 3, 4)),
    )
    place = suspected(cases, [0, 1], {"k": 1})
    assert "`k` is 1" in place.sentence(lambda case: case.arguments.get("k") == 2)


def pairs_of(*numbers):
    """Pairs of one case each, from rows of (expected, actual)."""
    rows = (torch.tensor(both, dtype=torch.float64) for both in numbers)
    return [Pair(Case("", {}), *both) for both in rows]


def said_of(*numbers):
    return explain(pairs_of(*numbers), [], "Your result", "the expected one")


def test_a_region_of_the_result_is_told_where_all_that_is_wrong_lies_in_it():
    a, b = ([-1.0, 2, -3], [0.0, 2, 0]), ([4.0, -5, 6], [4.0, 0, 6])
    c = ([7.0, -8, -2], [7.0, 1, 2])
    assert said_of(a, b, c) == "Your result is wrong only where a negative number is expected."
    assert said_of(a, b, ([7.0, 8], [7.0, 1])) is None
    assert said_of(a, a, a) is None  # one result is too few
    first = [([1.0, -2, 3], [5.0, -2, 3]), ([-4.0, 5, 6], [9.0, 5, 6]), ([7.0, 0, 9], [0.0, 0, 9])]
    assert said_of(*first) == "Your result is wrong only in the first element."


def test_no_more_than_two_facts_are_told(tmp_path, monkeypatch):
    monkeypatch.setenv("RLCOURSE_HOME", str(tmp_path))

    def reverse_kl_advantages(student_logprobs, teacher_logprobs, mask, gamma=0.0):
        student_logprobs *= 2
        return (teacher_logprobs - student_logprobs.sin()).float() / mask

    result = check(reverse_kl_advantages, seed=0)
    assert result.mistake is None and len(result.sentences) == MOST_FACTS


def test_a_case_is_said_to_fail_alone_only_if_no_other_fails(tmp_path, monkeypatch):
    """Neither where the others show a declared mistake, nor where they leak."""
    monkeypatch.setenv("RLCOURSE_HOME", str(tmp_path))

    def pass_at_k_curve(counts, n, ks):
        table = [[pass_at_k(n, int(c), k) for k in ks] for c in counts]
        return torch.tensor(table or [[0.0] * len(ks)], dtype=torch.float64).mean(0)

    result = check(pass_at_k_curve, seed=0)
    assert result.half and result.agreeing < result.cases - 1
    assert not any("only “" in said for said in result.sentences)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_few_numbers_are_compared_as_many_are(dtype):
    """Few in Python, many in torch: one rule, written twice."""
    apart = (0, 1e-13, 1e-9, 3e-7, 1e-6, 1e-4, 3e-4, 1e-2, -1e-9, -1e-4)
    numbers = [0.0, 1e-12, 1e-6, 1.0, 1e4, 1e300, math.inf, math.nan]
    near = [(n, n + d * max(1, abs(n))) for n in (*numbers, *(-n for n in numbers)) for d in apart]
    for rule in (Tolerance(1e-6, 1e-9), Tolerance(1e-3, 0.0), Tolerance(0.0, 1e-2)):
        for a, b in (*near, *product(numbers, repeat=2)):
            one, other = (torch.tensor([x], dtype=dtype) for x in (a, b))
            many = [x.expand(FEW + 1) for x in (one, other)]
            assert rule.close(one, other) == rule.close(*many), (rule, a, b)
