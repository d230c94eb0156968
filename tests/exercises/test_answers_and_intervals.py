"""Random answers: an honest bootstrap passes whatever it draws, and a wrong one is still named."""

import numpy as np
import pytest

from rlcourse import check, exercises
from rlcourse.checks.asking.calling import call_all, describe
from rlcourse.checks.judging.exam import Exam


@pytest.fixture(autouse=True)
def own_record(tmp_path, monkeypatch):
    monkeypatch.setenv("RLCOURSE_HOME", str(tmp_path))


def intervals(resample):
    """A student's bootstrap around a rule that gives resampled means from numpy's generator."""

    def bootstrap_interval(correct, level=0.95, resamples=2000, seed=0):
        if not len(correct):
            raise ValueError("no scores")
        rng = np.random.default_rng(seed + 31)
        means = resample(rng, correct.double().numpy(), resamples)
        low, high = np.quantile(means, [(1 - level) / 2, (1 + level) / 2])
        return float(low), float(high)

    return bootstrap_interval


def honest(rng, scores, resamples):
    return rng.choice(scores, (resamples, len(scores))).mean(axis=1)


def test_an_honest_bootstrap_passes_on_every_seed():
    exercise, fn = exercises.get("bootstrap_interval"), intervals(honest)
    for seed in range(20):
        exam = Exam(exercise, 500 + seed, hidden=bool(seed % 2))
        result = exam.judge(describe(fn), call_all(fn, exam.cases))
        assert result.passed, result.message


WRONG = {
    "an interval of no length, the mean twice": lambda rng, x, n: np.array(
        [rng.permutation(x).mean() for _ in range(n)]
    ),
    "the middle of the scores, not of their means": lambda rng, x, n: x,
    "2000 resamples, whatever `resamples` says": lambda rng, x, n: honest(rng, x, 2000),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_bootstrap_is_named_though_it_draws_other_numbers(name):
    for seed in range(3):
        assert check(intervals(WRONG[name]), seed=seed).mistake == name
