"""A wrong name is worse than none, and a verdict is the same for every drawing of the cases."""

import pytest
import torch

from rlcourse import algorithms, exercises
from rlcourse.checks.asking.calling import call_all, describe
from rlcourse.checks.judging.exam import Exam


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("RLCOURSE_HOME", str(tmp_path))


def judged(name, fn, seeds):
    """Results of one answer on several drawings, visible and hidden in turn."""
    for seed in range(seeds):
        exam = Exam(exercises.get(name), 300 + seed, hidden=bool(seed % 2))
        yield exam.judge(describe(fn), call_all(fn, exam.cases))


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    ["whiten", "importance_weights", "kl_shaped_rewards"],
)
def test_a_turned_sign_is_called_so_and_nothing_else(name):
    reference = exercises.get(name).reference
    for result in judged(name, lambda *args, **kwargs: -reference(*args, **kwargs), 3):
        said = result.mistake or " ".join(result.sentences)
        assert "sign" in said and "as well" not in " ".join(result.sentences), result


def test_a_constant_from_ones_own_divisor_gets_no_name():
    def monte_carlo_policy_gradient(logits, rewards, samples, generator):
        probabilities = logits.softmax(0)
        actions = torch.multinomial(probabilities, samples, replacement=True, generator=generator)
        scores = torch.nn.functional.one_hot(actions, len(logits)) - probabilities
        paid = rewards[actions]
        return (paid[:, None] * scores).sum(0) / (paid != 0).sum().clamp(min=1)

    for result in judged("monte_carlo_policy_gradient", monte_carlo_policy_gradient, 6):
        assert not result.passed and result.mistake is None
        assert "times 2" not in result.message


def with_another_eps(parts, weights, group_size, eps=1e-4):
    columns = [algorithms.group_normalized_advantages(p, group_size, eps) for p in parts.T]
    total = torch.stack(columns, dim=1) @ weights
    return (total - total.mean()) / (total.std(correction=min(1, len(total) - 1)) + 1e-8)


def of_rounded_numbers(before, after):
    pairs = [(a.bfloat16() != b.bfloat16()) for a, b in zip(before, after, strict=True)]
    return sum(int(p.sum()) for p in pairs) / max(1, sum(p.numel() for p in pairs))


@pytest.mark.parametrize(
    ("name", "fn", "words"),
    [
        ("decoupled_advantages", with_another_eps, "0/0"),
        ("changed_share", of_rounded_numbers, "`isclose`"),
    ],
)
def test_a_name_says_no_more_than_the_numbers_show(name, fn, words):
    for result in judged(name, fn, 2):
        assert result.mistake and words not in result.message
