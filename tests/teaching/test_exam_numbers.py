"""Every number in the solutions of the exam sheets follows from the numbers in its question.

A row of ``SOLVED`` takes the numbers of a question, in order, and computes those of its solution,
in order too. A number that is wrong in the digits it is written with fails, and so does one that
no row computes.
"""

import math
import re
from fractions import Fraction

import pytest
import torch
from torch import tensor

from rlcourse.algorithms import (
    exact_policy_gradient,
    group_mean_advantages,
    implicit_rewards,
    leave_one_out_advantages,
    ppo_clip_loss,
    probe_gap,
    unbiased_rewards,
    value_advantages,
)
from rlcourse.courses import shipped

SHEETS = shipped().directory / "teaching" / "exams"
QUESTION = re.compile(
    r"^## (\d+)\. [^\n]*\((\d+) points\)\n(.*?)^### Solution\n(.*?)(?=^## |\Z)",
    re.MULTILINE | re.DOTALL,
)
EARNED = re.compile(r"\((\d+(?:\.\d+)?) points?( each)?[^)]*\)")
NUMBER = re.compile(r"(?:(?<!\w)[-−])?(?<![\w.])\d+(?:,\d{3})*(?:\.\d+)?(?:/\d+)?")


def plain(text):
    """A text without points and without the k of pass@k, and with 2/3 for LaTeX's fraction."""
    return re.sub(r"\\tfrac(\d)(\d)", r"\1/\2", re.sub(r"pass@\d+", "", EARNED.sub("", text)))


def numbers(text):
    return [n.replace("−", "-").replace(",", "") for n in NUMBER.findall(text)]


def agrees(written, value):
    """Whether a number is right in all of the digits that it is written with."""
    digits = len(written.partition(".")[2])
    allowed = 1e-6 if "/" in written else 0.5 * 10**-digits + 1e-6
    return abs(float(Fraction(written)) - float(value)) <= allowed


def exact_step(*given):
    pi, rewards = tensor(given[:3]), tensor(given[3:])
    gradient = exact_policy_gradient(pi.log(), rewards)
    shared = -(pi @ gradient)
    terms = [p * r for p, r in zip(given[:3], given[3:], strict=True) if r]
    average = pi @ rewards
    return [*terms, average, average, *gradient, gradient[1], gradient[1], shared, 0]


def two_advantages(*rewards):
    group = tensor(rewards)
    ours, mean = leave_one_out_advantages(group, 4), group_mean_advantages(group, 4)
    others = [(sum(rewards) - reward) / 3 for reward in rewards]
    right, wrong = 0, 3
    factor = (ours / mean)[0]
    assert torch.allclose(ours, factor * mean)
    one_right = [rewards[right], others[right], ours[right]]
    return [*one_right, rewards[wrong], others[wrong], ours[wrong], 1, factor]


def clip(clip, *pairs):
    return [value for value, _ in clipped(clip, *pairs)]


def clipped(clip, *pairs):
    """(objective, whether a gradient flows) for each pair of ratio and advantage."""
    found = []
    for ratio, advantage in zip(pairs[::2], pairs[1::2], strict=True):
        logprobs = tensor([[math.log(ratio)]], requires_grad=True)
        advantages, mask = tensor([float(advantage)]), torch.ones(1, 1)
        loss = ppo_clip_loss(logprobs, torch.zeros(1, 1), advantages, mask, clip)[0]
        (gradient,) = torch.autograd.grad(loss, logprobs)
        found.append((-loss.item(), bool(gradient.any())))
    return found


def implicit(*given):
    reference, policy, beta = tensor(given[:3]), tensor(given[3:6]), given[6]
    return list(implicit_rewards(policy.log(), reference.log(), beta))


def judge(fp, fn, reward):
    return [reward, fp, 1 - fp - fn, unbiased_rewards(tensor([reward]), fp, fn)[0]]


def fresh_sampler(*given):
    """What a stale sampler's gap grows from, and the ratio of two equal policies."""
    logprobs = tensor([[0.3, 0.6]]).log()
    gap = probe_gap(logprobs, logprobs, torch.ones(1, 2))[0]
    return [gap, (logprobs - logprobs).exp().max()]


def credit(*values):
    row, outcome = tensor([values]), 0.0
    credits = value_advantages(row, tensor([outcome]), tensor([[0, 1, 2]]), torch.ones(1, 3))[0]
    return [*credits, credits.sum(), outcome, values[0]]


def nothing(*given):
    return []


SOLVED = {
    ("midterm", 1): exact_step,
    ("midterm", 2): two_advantages,
    ("midterm", 3): clip,
    ("midterm", 4): lambda *given: [math.exp(0.0)],  # the ratio of a policy to itself
    ("midterm", 5): nothing,
    ("final", 1): implicit,
    ("final", 2): judge,
    ("final", 3): lambda asked, first, second: [first + second, first, second],
    ("final", 4): fresh_sampler,
    ("final", 5): credit,
    ("final", 6): nothing,
}
ASKED = {
    (path.stem, int(n)): (int(points), question, solution)
    for path in SHEETS.glob("*.md")
    for n, points, question, solution in QUESTION.findall(path.read_text("utf-8"))
}


def given(key):
    return [float(n) for n in numbers(plain(ASKED[key][1]))]


def right(key, solution):
    """Whether a solution has the numbers that its row computes, no more and no fewer."""
    written, computed = numbers(solution), SOLVED[key](*given(key))
    return len(written) == len(computed) and all(map(agrees, written, computed))


def test_every_question_has_a_row():
    assert set(SOLVED) == set(ASKED)


EACH = pytest.mark.parametrize("key", SOLVED, ids=lambda key: f"{key[0]}-{key[1]}")


@EACH
def test_the_numbers_of_a_solution_follow_from_its_question(key):
    solution = plain(ASKED[key][2])
    computed = [round(float(x), 4) for x in SOLVED[key](*given(key))]
    assert right(key, solution), f"{numbers(solution)} is written, {computed} is right"


@EACH
def test_any_changed_digit_or_sign_of_a_solution_is_found(key):
    solution = plain(ASKED[key][2])
    for number in NUMBER.finditer(solution):
        for at in range(*number.span()):
            old = solution[at]
            new = str((int(old) + 1) % 10) if old.isdigit() else "" if old in "-−" else old
            assert new == old or not right(key, solution[:at] + new + solution[at + 1 :])


@EACH
def test_the_points_within_a_solution_add_up(key):
    points, _, solution = ASKED[key]
    answers = len(re.findall("flows|stopped", solution))  # of the one question that says "each"
    earned = [float(n) * (answers if each else 1) for n, each in EARNED.findall(solution)]
    assert sum(earned) == points


def test_what_rises_what_flows_and_which_step_lost_the_answer():
    probabilities, rewards = tensor([0.6, 0.3, 0.1]), tensor([0.0, 1, 3])
    step = 0.01 * exact_policy_gradient(probabilities.log(), rewards)
    after = (probabilities.log() + step).softmax(0)
    assert (after > probabilities).tolist() == [False, True, True]
    said = [word == "flows" for word in re.findall("flows|stopped", ASKED["midterm", 3][2])]
    assert [flows for _, flows in clipped(*given(("midterm", 3)))] == said
    credits = credit(*given(("final", 5)))[:3]
    assert credits.index(min(credits)) == 1 and "second step" in ASKED["final", 5][2]
