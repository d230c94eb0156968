"""Wrong answers that once passed because a case was missing: each is rejected on every drawing."""

import re

import pytest
import torch

from rlcourse import algorithms, exercises
from rlcourse.checks.asking.calling import call_all, describe
from rlcourse.checks.judging.exam import Exam

OPERATIONS = {"+": int.__add__, "-": int.__sub__, "*": int.__mul__}


def examined(name, fn, seed, hidden):
    exam = Exam(exercises.get(name), seed, hidden)
    return exam.judge(describe(fn), call_all(fn, exam.cases))


def without_spaces(text):
    found = re.fullmatch(r"([0-9]{1,9})([-+*/])([0-9]{1,9})", text.replace(" ", ""))
    return algorithms.calculator(found[0]) if found and "\n" not in text else "?"


def by_range(text):
    found = re.fullmatch(r" *([0-9]{1,9}) *([+-/*]) *([0-9]{1,9}) *", text)
    if not found:
        return "?"
    a, b = int(found[1]), int(found[3])
    if found[2] in OPERATIONS:
        return str(OPERATIONS[found[2]](a, b))
    return str(a // b) if b and a % b == 0 else "?"


def split_and_int(text):
    parts = re.split(r"\s*([-+*/])\s*", text.strip(" "))
    try:
        a, sign, b = int(parts[0]), parts[1], int(parts[2])
    except (ValueError, IndexError):
        return "?"
    if len(parts) > 3 or "\n" in text:
        return "?"
    if sign in OPERATIONS:
        return str(OPERATIONS[sign](a, b))
    return str(a // b) if b and a % b == 0 else "?"


def below_the_bound(
    objective_fn, kl_fn, parameters, step, max_kl, shrink=0.5, max_backtracks=10
):  # fmt: skip
    parameters = list(parameters)
    start, before = torch.nn.utils.parameters_to_vector(parameters).detach(), objective_fn()
    for k in range(max_backtracks):
        torch.nn.utils.vector_to_parameters(start + shrink**k * step, parameters)
        if objective_fn() > before and kl_fn() < max_kl:
            return shrink**k
    torch.nn.utils.vector_to_parameters(start, parameters)
    return 0.0


def wants_a_spread(entropy, reward):
    x = entropy.double().exp()
    if not len(x) or x.max() - x.min() < 0.05:
        raise ValueError("too close")
    return algorithms.fit_entropy_reward(entropy, reward)


def in_float32(counts, n, ks):
    return algorithms.pass_at_k_curve(counts, n, ks).float()


def above_a_thousandth(loss, tokens, eos_id):
    logprobs = torch.zeros(tokens.shape, dtype=torch.float64, requires_grad=True)
    counted = torch.autograd.grad(loss(logprobs), logprobs)[0].abs() > 1e-3
    ended = (tokens == eos_id).long()
    real = ended.cumsum(1) - ended == 0
    return (real & ~counted).sum(), (counted & ~real).sum()


def by_length(before, after):
    if len(before) != len(after):
        raise ValueError
    return algorithms.changed_share(before, after)


def counted_after_the_loop(before, after):
    changed = sum(int((old != new).sum()) for old, new in zip(before, after, strict=True))
    return changed / max(1, sum(old.numel() for old in before))


WRONG = [
    ("calculator", without_spaces),
    ("calculator", by_range),
    ("calculator", split_and_int),
    ("backtracking_line_search", below_the_bound),
    ("fit_entropy_reward", wants_a_spread),
    ("pass_at_k_curve", in_float32),
    ("probe_mask", above_a_thousandth),
    ("changed_share", by_length),
    ("changed_share", counted_after_the_loop),
]


@pytest.mark.parametrize(("name", "fn"), WRONG, ids=[fn.__name__ for _, fn in WRONG])
def test_it_is_rejected_on_every_drawing(name, fn):
    for seed in range(3):
        for hidden in (False, True):
            assert not examined(name, fn, seed, hidden).passed


def test_a_promised_dtype_is_said_without_a_false_reason():
    result = examined("pass_at_k_curve", in_float32, 0, False)
    assert "The result is float32 where float64 is expected." in result.message


def test_where_no_width_is_promised_either_will_do():
    def in_double(answers, group_size):
        return algorithms.majority_reward(answers, group_size).double()

    assert examined("majority_reward", in_double, 0, False).passed


def test_a_solver_that_rounds_otherwise_the_second_time_is_repeatable():
    """`torch.linalg.lstsq` gives other last digits where its numbers lie elsewhere in memory."""
    calls = []

    def rounding(entropy, reward):
        calls.append(None)
        a, b = algorithms.fit_entropy_reward(entropy, reward)
        return a * (1 + 1e-14 * (len(calls) % 2)), b

    def noisy(entropy, reward):
        calls.append(None)
        a, b = algorithms.fit_entropy_reward(entropy, reward)
        return a * (1 + 1e-7 * (len(calls) % 2)), b

    assert examined("fit_entropy_reward", rounding, 0, False).passed
    said = examined("fit_entropy_reward", noisy, 0, False).message
    assert "two different results" in said
