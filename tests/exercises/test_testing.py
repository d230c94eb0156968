"""Exercises in which the student is the grader: what a test is tried on, and what it earns."""

import pytest
import torch

from rlcourse import check, exercises
from rlcourse.algorithms import dpo_loss, ppo_clip_loss
from rlcourse.checks.asking import stand_in
from rlcourse.checks.asking.calling import call_all, describe
from rlcourse.checks.judging import testing
from rlcourse.checks.judging.exam import Exam

TESTS = [exercise for exercise in exercises.all() if exercise.suspects]


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("RLCOURSE_HOME", str(tmp_path))


def examined(exercise, fn, hidden=False):
    exam = Exam(exercise, 0, hidden)
    return exam.judge(describe(fn), call_all(fn, exam.cases))


@pytest.mark.parametrize("exercise", TESTS, ids=lambda e: e.name)
@pytest.mark.parametrize("hidden", [False, True])
def test_the_solution_accepts_what_is_called_right_and_rejects_all_else(exercise, hidden):
    exam = Exam(exercise, 0, hidden)
    for case, outcome in zip(exam.cases, exam.expected, strict=True):
        right = case.label.startswith(testing.RIGHT)
        assert outcome.value == (testing.ACCEPTS if right else testing.REJECTS), case.label


def accepts_all(f):
    pass


def rejects_all(f):
    raise AssertionError


@pytest.mark.parametrize("exercise", TESTS, ids=lambda e: e.name)
@pytest.mark.parametrize("fn", [accepts_all, rejects_all])
def test_saying_the_same_of_all_earns_nothing(exercise, fn):
    for hidden in (False, True):
        result = examined(exercise, lambda **given: fn(*given.values()), hidden)
        assert result.score == 0 and not result.passed


def test_points_are_the_product_of_both_shares_and_the_missed_are_named():
    def test_ppo_clip_loss(ppo_clip_loss):
        half = torch.tensor([[0.5]]).log(), torch.zeros(1, 1)
        loss, stopped = ppo_clip_loss(*half, torch.tensor([-2.0]), torch.ones(1, 1))
        assert abs(loss - 1.6) < 1e-6
        assert stopped == 1

    result = check(test_ppo_clip_loss, seed=0)
    # Of three right ones all are accepted, and of twelve wrong ones five rejected.
    assert result.score == pytest.approx(5 / 12)
    assert "It lets 7 of 12 wrong ones through" in result.message
    assert "“an ε of 0.2 whatever the argument says”" in result.message
    assert "A · min" not in result.message
    assert result.example is None


def test_what_is_returned_does_not_count_and_another_parameter_name_is_said():
    def test_dpo_loss(dpo_loss):
        return False

    def test_other(implementation):
        assert implementation

    assert "reject with `assert`" in check(test_dpo_loss, seed=0).message
    message = check(test_other, "test_dpo_loss", seed=0).message
    assert "takes one argument, `dpo_loss`, and is called by that name" in message


def test_an_assert_in_a_helper_is_told_with_the_line_that_called_the_helper():
    def close(a, b):
        assert abs(a - b) < 1e-6

    def test_ppo_clip_loss(ppo_clip_loss):
        one = torch.ones(1, 1)
        close(ppo_clip_loss(one, one, one[0], one)[0], -1.0)
        close(ppo_clip_loss(one, one, one[0], one)[0], 1.0)

    said = check(test_ppo_clip_loss, seed=0).message
    first = test_ppo_clip_loss.__code__.co_firstlineno
    assert f"`assert abs(a - b) < 1e-6`, called from your line {first + 3}" in said


def test_any_exception_rejects_and_a_lack_of_time_is_neither():
    from rlcourse.checks.asking.calling import Failure, Outcome

    said = {
        kind: testing.verdict(Outcome(error=Failure(kind, ""))).value
        for kind in ("AssertionError", "ValueError", "TimeoutError")
    }
    assert list(said.values()) == [testing.REJECTS, testing.REJECTS, testing.LATE]


def stand_in_of(function):
    """A stand-in for a function that is none of the course's."""
    import inspect

    testing._functions[7] = function
    return stand_in.StandIn(7, function.__name__, list(inspect.signature(function).parameters))


def test_autograd_works_through_a_stand_in_as_through_the_function_itself():
    generator = torch.Generator().manual_seed(0)
    rows = torch.randn(2, 3, generator=generator, dtype=torch.float64)
    mask = torch.tensor([[1, 1, 1], [1, 1, 0]]) > 0
    found = []
    for fn in (ppo_clip_loss, stand_in_of(ppo_clip_loss)):
        new, old = rows.clone().requires_grad_(), (rows + 0.3).requires_grad_()
        advantages = torch.tensor([1.0, -2.0], dtype=torch.float64, requires_grad=True)
        loss, stopped = fn(new, old, advantages, mask=mask, clip=0.1)
        assert not stopped.requires_grad
        (3 * loss).backward()
        assert old.grad is None and advantages.grad is None
        found.append((loss.detach(), stopped, new.grad))
    for direct, afar in zip(*found, strict=True):
        assert torch.equal(direct, afar)


def test_a_stand_in_fails_as_the_function_does():
    def picky(x, mode="sum"):
        if mode != "sum":
            raise ValueError(f"unknown mode {mode!r}")
        return x.sum(), None, 3

    afar, x = stand_in_of(picky), torch.ones(2, requires_grad=True)
    total, nothing, three = afar(x)
    assert total == 2 and total.requires_grad and nothing is None and three == 3
    with pytest.raises(ValueError, match="unknown mode 'mean'"):
        afar(x, mode="mean")
    with pytest.raises(TypeError):
        afar(x, "sum", 3)
    with pytest.raises(TypeError):
        afar(x, x=x)
    with pytest.raises(TypeError):
        afar(x, nonsense=1)
    with torch.no_grad():
        assert not afar(x)[0].requires_grad


def test_nothing_of_the_implementation_is_within_reach_of_the_test():
    """No code, no name, no object that two calls have in common, no order of the numbers."""
    exercise = exercises.get("test_dpo_loss")
    for case in Exam(exercise, 0).cases:
        spec = case.question().arguments["dpo_loss"]
        assert spec.options.keys() == {"number", "name", "parameters"}
        assert spec.options["name"] == "dpo_loss"
        assert spec.options["parameters"] == ["chosen_logprobs", "rejected_logprobs",
            "ref_chosen_logprobs", "ref_rejected_logprobs", "beta", "label_smoothing"]  # fmt: skip
    numbers = [
        [c.arguments["dpo_loss"].options["number"] for c in Exam(exercise, seed).cases]
        for seed in (0, 1)
    ]
    assert len({*numbers[0], *numbers[1]}) == len(numbers[0]) + len(numbers[1])


@pytest.mark.parametrize(
    "call",
    [
        {"call": 1, "arguments": {}},  # a number that is not in this exam
        {"call": "7", "arguments": {}},
        {"call": None},
        {"call": 7, "arguments": [1]},
        {"call": 7, "arguments": {"nonsense": 1}},
        {"call": 7, "arguments": {"chosen_logprobs": torch.zeros(100_000)}},
        {"call": 7, "arguments": {"chosen_logprobs": object()}},
        {"call": 7, "arguments": {"chosen_logprobs": 1.0}, "tracked": ["chosen_logprobs"]},
        {"call": 7, "arguments": {"chosen_logprobs": torch.zeros(2)}, "tracked": 3},
        {"call": 7, "arguments": {n: torch.zeros(2) for n in "abcd"}, "weights": "x"},
    ],
    ids=range(10),
)
def test_a_call_that_is_none_is_answered_with_an_error(call):
    testing._functions[7] = dpo_loss
    answers = testing.Answers(())
    answers.numbers = frozenset({7})
    assert set(answers(call, 0)) == {"error"}
    assert set(answers({"call": 7, "arguments": {}}, answers.MOST)) == {"error"}


def test_the_table_of_lesson_05_says_what_the_implementations_compute():
    """Ratios 1.5, 0.5 and 1.5 with advantages +1, −2 and −2; bold are those that are wrong."""
    suspects = exercises.get("test_ppo_clip_loss").suspects
    rows = {
        "the larger of the two terms": (1.5, -1.0, -2.4),
        "the clipped term alone": (1.2, -1.6, -2.4),
        "a clip from above only": (1.2, -1.0, -3.0),
        "A · min(ratio, clip(ratio))": (1.2, -1.0, -2.4),
        "a clip that changes the value but not the gradient": (1.2, -1.6, -3.0),
    }
    implementations = {name: suspects.mistake(name).implementation for name in rows}
    for fn, row in [
        (ppo_clip_loss, (1.2, -1.6, -3.0)),
        *((implementations[name], row) for name, row in rows.items()),
    ]:
        for ratio, advantage, value in zip((1.5, 0.5, 1.5), (1.0, -2.0, -2.0), row, strict=True):
            ratio = torch.tensor([[ratio]], dtype=torch.float64)
            one = torch.ones(1, 1).double()
            loss, _ = fn(ratio.log(), 0 * one, advantage * one[0], one > 0)
            assert -loss.item() == pytest.approx(value)
