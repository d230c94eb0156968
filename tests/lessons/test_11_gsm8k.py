"""Lesson 11: its estimates, and the direction of what its runs show."""

import os
from dataclasses import replace
from math import comb
from pathlib import Path

import pytest
import torch

from rlcourse import algorithms as A
from rlcourse.evaluation import evaluate_policy
from rlcourse.tasks import (
    Problem,
    correctness_reward,
    extract_answer,
    extract_lenient_answer,
    extract_tagged_answer,
    load_task,
)
from rlcourse.training import load_recipe, train

GSM8K = Path(
    os.environ.get("RLCOURSE_GSM8K", Path(__file__).resolve().parents[3] / "shared" / "gsm8k")
)


def expected(estimate, p, n=8):
    return sum(comb(n, c) * p**c * (1 - p) ** (n - c) * estimate(n, c) for c in range(n + 1))


@pytest.mark.parametrize("p", [0.05, 0.1, 0.5])
def test_the_unbiased_estimate_is_and_the_obvious_one_is_too_low(p):
    for k in range(1, 9):
        true = 1 - (1 - p) ** k
        unbiased = expected(lambda n, c, k=k: A.pass_at_k(n, c, k), p)
        obvious = expected(lambda n, c, k=k: 1 - (1 - c / n) ** k, p)
        assert unbiased == pytest.approx(true, abs=1e-12)
        assert obvious < true - 1e-3 if k > 1 else obvious == pytest.approx(true)


def test_one_of_thirty_has_no_negative_accuracy_and_none_of_thirty_no_interval():
    one = torch.tensor([1.0] + [0.0] * 29)
    half = 1.96 * one.std(correction=0).item() / 30**0.5
    assert one.mean().item() - half < 0 <= A.bootstrap_interval(one)[0]
    assert A.bootstrap_interval(torch.zeros(30)) == (0.0, 0.0)
    unseen = (1 - 3 / 30) ** 30
    assert unseen == pytest.approx(0.04, abs=5e-3)


def test_two_points_are_seen_four_times_in_five_with_so_many_pairs():
    """The formula against simulated pairs that disagree on a fifth of the problems."""
    n, d, share = 3920, 0.02, 0.2
    generator = torch.Generator().manual_seed(0)
    u = torch.rand(2000, n, generator=generator)
    difference = (u < (share + d) / 2).double() - (u > 1 - (share - d) / 2).double()
    z = difference.mean(dim=1) / (difference.std(dim=1) / n**0.5)
    shown = (z > 1.96).double().mean().item()
    assert shown == pytest.approx(0.8, abs=0.045)  # five standard errors


def in_tags(demonstration):
    steps, last = demonstration.answer.rsplit("\n", 1)
    mark, number = last.rsplit(" ", 1)
    end = f"<answer>{number}</answer>" if mark == "####" else last
    return Problem(demonstration.question, f"<think>\n{steps}\n</think>\n{end}")


@pytest.fixture(scope="module")
def tagged():
    """The lesson's task in tags, and the embedded model after its seconds of imitation."""
    stories = load_task("word_problems", seed=1)
    task = replace(
        stories,
        extract=extract_tagged_answer,
        demonstrations=[in_tags(d) for d in stories.demonstrations],
    )
    recipe = load_recipe("sft", policy="tiny", seed=1, eval_problems=0)
    return task, train(recipe, task=task, progress=False).policy


def measure(policy, task, **changes):
    settings = {"samples": 8, "temperature": 0.7, "extract": extract_tagged_answer, **changes}
    return evaluate_policy(policy, task.evaluation[:100], **settings)


def solved_leniently(evaluation):
    return sum(any(s.lenient_correct for s in t.samples) for t in evaluation.transcripts)


@pytest.mark.weekly
def test_rule_prompt_and_temperature_move_the_score_of_one_model(tagged):
    task, start = tagged
    before = measure(start, task)
    strict, lenient = before.sampled_accuracy.value, before.sampled_lenient_accuracy.value
    assert strict < 0.7 * lenient
    other = measure(start, task, system="You are a helpful assistant.")
    assert other.sampled_lenient_accuracy.value < 0.6 * lenient
    # Cold samples resemble one another: eight of them gain less over one.
    cold, warm = (measure(start, task, temperature=t) for t in (0.3, 1.0))
    gains = [solved_leniently(e) / 100 / e.sampled_lenient_accuracy.value for e in (cold, warm)]
    assert gains[0] < gains[1]
    texts = [s.text for t in before.transcripts for s in t.samples]
    answers = [t.answer for t in before.transcripts for _ in t.samples]
    # The vote mends the form: read strictly it gains, read leniently it does not.
    votes = [A.majority_vote([s.lenient for s in t.samples]) for t in before.transcripts]
    right = [v == extract_answer(t.answer) for v, t in zip(votes, before.transcripts, strict=True)]
    assert before.majority_at[8].value > 1.3 * strict
    assert sum(right) / len(right) < lenient + 0.05
    by_hand = correctness_reward(texts, answers, extract_lenient_answer).mean().item()
    assert by_hand == pytest.approx(lenient)
