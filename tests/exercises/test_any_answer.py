"""No answer makes a check raise; the engine's last resort is not needed for any that we know."""

import random

import pytest
import torch
from shared import one_in

from rlcourse import check
from rlcourse.checks.asking.calling import call_all, describe
from rlcourse.checks.exercise import Exercise
from rlcourse.checks.judging import comparing
from rlcourse.checks.judging import exam as engine
from rlcourse.checks.judging.exam import Exam
from rlcourse.exercises import all as every
from rlcourse.exercises import get

SHARES = 3
loop: list = []
loop.append(loop)


CONSTANTS = [
    0.0, float("nan"), float("inf"), "x", None, True, -1, 10**5000, 2**63, 1j, b"x", len, {1},
    [], (), {}, [[1.0, [2.0]], []], loop, {"a": torch.zeros(2)}, torch.zeros(0),
    torch.zeros(10**7, 0), torch.tensor(True), torch.ones(2, 3) > 0, torch.zeros(2) + 0j,
    torch.eye(2).to_sparse(), torch.tensor(3), torch.zeros(1, 1, 1, 1, 1),
    torch.zeros((), device="meta"), torch.tensor(float("nan")).double(), torch.tensor(0.0).double(),
    torch.zeros(2, dtype=torch.uint64), torch.zeros(2).to(torch.float8_e4m3fn),
    torch.zeros(2).half(),
]  # fmt: skip


def _float(change):
    return lambda t: change(t) if t.is_floating_point() else t


CHANGES = {
    "NaN": _float(lambda t: t * float("nan")),
    "one NaN": _float(
        lambda t: torch.where(torch.arange(t.numel()).view(t.shape) == 0, t.log(), t)
    ),
    "infinite": _float(lambda t: t / 0),
    "huge": _float(lambda t: t + 1e307),
    "one more": lambda t: t + 1,
    "bool": lambda t: t.bool(),
    "rounded": _float(lambda t: t.nan_to_num(0, 0, 0).long()),
    "double": lambda t: t.double(),
    "reversed": lambda t: t.flip(-1) if t.ndim else t,
    "transposed": lambda t: t.transpose(0, -1) if t.ndim else t[None],
    "the sum": lambda t: t.sum(),
    "no element": lambda t: t.reshape(-1)[:0],
    "complex": lambda t: t + 0j,
    "sparse": lambda t: t.to_sparse(),
    "a list": lambda t: t.tolist(),
}


def changed(value, change):
    if isinstance(value, torch.Tensor):
        return change(value)
    if isinstance(value, list | tuple):
        return type(value)(changed(item, change) for item in value)
    return change(torch.tensor(value)) if isinstance(value, float) else value


@pytest.fixture
def no_last_resort(monkeypatch):
    def fail(*details):
        raise details[-1]

    monkeypatch.setattr(engine, "last_resort", fail)
    monkeypatch.setattr(comparing, "incomparable", fail)


def verdict(exam: Exam, fn):
    result = exam.judge(describe(fn), call_all(fn, exam.cases, repeat=False))
    assert result._repr_html_()
    return result


@pytest.mark.parametrize("exercise", one_in(5, every()))
def test_strange_answers_are_judged_without_the_last_resort(exercise: Exercise, no_last_resort):
    exam = Exam(exercise, seed=0)
    turn = every().index(exercise) % SHARES  # each answer comes to many exercises, in turn
    for constant in CONSTANTS[turn::SHARES]:
        assert 0 <= verdict(exam, lambda *_, constant=constant, **__: constant).score <= 1
    for change in list(CHANGES.values())[turn::SHARES]:
        verdict(exam, lambda *a, c=change, **k: changed(exercise.reference(*a, **k), c))
    rng = random.Random(exercise.name)
    for _ in range(10):  # right on some cases, wrong in several ways on others
        outcomes = [
            exam.outcome_of(rng.choice(exercise.mistakes), i) if rng.random() < 0.7 else right
            for i, right in enumerate(exam.expected)
        ]
        assert exam.judge(describe(exercise.reference), outcomes)._repr_html_()


def test_what_no_question_foresaw_gets_the_last_sentence(monkeypatch):
    def stumble(*_):
        raise ZeroDivisionError

    exercise = get("mean_reward")
    monkeypatch.setattr(engine, "diagnose", stumble)
    wrong = check(lambda rewards: rewards.sum() + 1e5, exercise, seed=0)
    assert not wrong.passed and wrong.sentences == ("The values differ from the expected ones.",)
    monkeypatch.setattr(comparing, "differences", stumble)
    assert check(lambda rewards: rewards.sum(), exercise, seed=0).agreeing == 0
