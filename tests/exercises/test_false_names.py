"""A wrong name is worse than none, and a verdict is the same for every drawing of the cases."""

import pytest
import torch

from rlcourse import exercises
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
