"""Comparisons of policies whose answers are known, against closed forms and brute force."""

from dataclasses import replace
from itertools import product
from math import sqrt

import pytest
import torch
from scripted import PROBLEMS, right_when

from rlcourse.errors import UserError
from rlcourse.evaluation import compare, evaluate_policy
from rlcourse.evaluation.comparing import difference, sign_test
from rlcourse.tasks.problem import Problem


def evaluated(right, of=10, samples=2, right_samples=lambda q: 0, **options):
    """An evaluation in which the problems in `right` are solved greedily."""
    problems = [Problem(str(n), f"#### {n}") for n in range(of)]
    policy = right_when(lambda q: int(q) in right, right_samples)
    return evaluate_policy(policy, problems, samples=samples, **options)


@pytest.mark.parametrize("n", range(11))
def test_the_sign_test_counts_coins(n):
    """Every outcome of n fair coins, enumerated, that splits them as unevenly or more so."""
    flips = [sum(coins) for coins in product((0, 1), repeat=n)]
    for heads in range(n + 1):
        unevenness = abs(heads - (n - heads))
        extreme = sum(abs(h - (n - h)) >= unevenness for h in flips) / len(flips)
        assert sign_test(heads, n - heads) == pytest.approx(extreme, abs=1e-12)


def test_the_sign_test_of_thousands_is_exact():
    assert sign_test(0, 0) == 1
    assert sign_test(0, 2000) == pytest.approx(2.0**-1999, rel=1e-12)
    assert sign_test(650, 669) == pytest.approx(0.62, abs=0.01)  # z = 18/√1319, corrected


def test_problems_are_counted_by_who_solves_them():
    found = compare(evaluated({0, 1, 2, 3, 4}, 11), evaluated({4, 5, 6}, 11))
    assert (found.both, found.only_a, found.only_b, found.neither) == (1, 4, 2, 4)
    assert found["accuracy"].a == pytest.approx(5 / 11)
    assert found["accuracy"].b == pytest.approx(3 / 11)
    assert found["accuracy"].difference.value == pytest.approx(-2 / 11)
    assert found.p_value == found["accuracy"].p_value == sign_test(4, 2) == 0.6875


def test_a_single_problem_is_compared():
    one = compare(evaluated({0}, 1), evaluated(set(), 1))
    assert one["accuracy"].difference.value == -1 and one["accuracy"].detectable == 0


def test_the_interval_is_that_of_paired_differences():
    """Solving nearly the same problems leaves a small difference sure, which two intervals hide."""
    a, b = evaluated(set(range(0, 200)), 400), evaluated(set(range(0, 220)), 400)
    found = compare(a, b)["accuracy"]
    assert a.accuracy.high > b.accuracy.low
    assert found.told_apart and 0.025 < found.difference.low < 0.035
    assert found.difference.high < 0.075
    exact = sqrt(0.05 * 0.95 / 400)  # of the mean of 20 ones and 380 zeros
    width = found.difference.high - found.difference.low
    assert width == pytest.approx(2 * 1.96 * exact, rel=0.15)


def test_as_many_problems_as_are_said_to_be_needed_show_the_difference_four_times_in_five():
    generator = torch.Generator().manual_seed(1)

    def draw(n):
        a = (torch.rand(n, generator=generator) < 0.5).double()
        gained = (torch.rand(n, generator=generator) < 0.16).double() * (1 - a)
        return a, a + gained - (torch.rand(n, generator=generator) < 0.06).double() * a

    a, b = draw(5000)
    paired = difference("accuracy", a.tolist(), b.tolist())
    spread, mean = torch.std_mean(b - a)
    assert paired.needed == pytest.approx(7.849 * spread.item() ** 2 / mean.item() ** 2, rel=0.01)
    assert paired.detectable == pytest.approx(2.80 * spread.item() / sqrt(5000), rel=0.01)
    # gained 0.08, lost 0.03: d = 0.05 and s² = 0.11 − 0.05², so (1.96 + 0.84)² s² / d² ≈ 338
    needed = int(7.849 * (0.11 - 0.05**2) / 0.05**2)
    shown = 0
    for _ in range(300):
        a, b = draw(needed)
        d = b - a
        shown += bool(d.mean() > 1.96 * d.std() / sqrt(needed))
    assert 0.69 < shown / 300 < 0.91  # 0.8, by five standard errors


def test_verdicts_say_what_can_be_said():
    few = compare(evaluated({1}, 40), evaluated({0, 1, 2}, 40))
    needed = few["accuracy"].needed
    assert not few["accuracy"].told_apart and 100 < needed < 200
    assert f"about {round(needed, -1)} would be needed" in few["accuracy"].verdict
    better = compare(evaluated({1}, 40), evaluated(set(range(20)), 40))
    assert better["accuracy"].verdict == "B is higher by 0.475, the interval excludes 0"
    assert better["sampled_accuracy"].verdict == "the same on each of the 40 problems"
    even = compare(evaluated({1, 2, 3}, 40), evaluated({3, 4, 5}, 40))["accuracy"]
    assert even.difference.value == 0 and even.needed is None
    assert f"can show a difference of about {even.detectable:.3f} or more" in even.verdict
    enough = difference("accuracy", [0.0] * 10, [1.0] * 5 + [0.0] * 5)
    assert enough.needed <= 10 and enough.excludes_zero and not enough.told_apart
    only = "(the interval excludes 0, but only 5 of them differ)"
    assert enough.verdict == f"cannot be told apart with 10 problems {only}"


@pytest.mark.parametrize("gained", range(1, 9))
def test_a_handful_of_problems_is_no_evidence_whatever_the_interval_says(gained):
    found = compare(evaluated(set(), 400), evaluated(set(range(gained)), 400))["accuracy"]
    assert found.told_apart == (gained >= 6)  # 2/2⁵ = 0.0625, 2/2⁶ = 0.03125
    if found.excludes_zero and not found.told_apart:
        assert f"the interval excludes 0, but only {gained} of them differ" in found.verdict


def test_pass_at_k_is_compared_for_the_k_that_both_have():
    found = compare(evaluated({1}, samples=4), evaluated({1}, samples=2, temperature=0.5))
    names = [d.name for d in found.differences]
    assert [n for n in names if "@" in n] == ["pass@2", "maj@2"]
    assert found.settings == {"samples": (4, 2), "temperature": (1.0, 0.5)}


def test_other_problems_are_refused_in_one_sentence(tmp_path):
    a = evaluated({1})
    with pytest.raises(UserError, match="A has 10 problems and B has 9: evaluate both on the same"):
        compare(a, evaluated({1}, of=9))
    other = replace(a, transcripts=[*a.transcripts[:4], a.transcripts[5], *a.transcripts[5:]])
    with pytest.raises(UserError, match="A and B differ in problem 5: evaluate both with the same"):
        compare(a, other)
    reworded = replace(a.transcripts[4], question="Another, of the same answer")
    other = replace(a, transcripts=[*a.transcripts[:4], reworded, *a.transcripts[5:]])
    with pytest.raises(UserError, match="A and B differ in problem 5"):
        compare(a, other)
    with pytest.raises(UserError, match="B has no transcripts"):
        compare(a, replace(a, transcripts=[]))


def test_what_a_task_puts_before_every_question_makes_no_other_problem():
    a = evaluated({1, 2})
    asked = [replace(t, question=f"Question: {t.question}") for t in a.transcripts]
    for pair in ((a, replace(a, transcripts=asked)), (replace(a, transcripts=asked), a)):
        assert compare(*pair).both == 2


def test_directories_are_compared_with_the_settings_that_differ(tmp_path):
    policy = right_when(lambda q: int(q) < 7)
    for name, options in (("a", {"system": "Think."}), ("b", {"max_tokens": 5})):
        evaluate_policy(policy, PROBLEMS, 2, out=tmp_path / name, names={"task": "t"}, **options)
    found = compare(tmp_path / "a", tmp_path / "b")
    assert found.settings == {"max_tokens": (64, 5), "system": ("Think.", None)}
    text = str(found)
    assert "max_tokens: 64 and 5" in text and text.endswith(found.verdict)
    assert str(tmp_path / "a") in text
