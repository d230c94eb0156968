"""What a contest counts, measures and says, without training anything."""

import signal
import time
from functools import partial

import pytest
import torch

from rlcourse import exercises
from rlcourse.checks.asking.calling import Facts, Outcome, describe
from rlcourse.checks.judging.contest import (
    Measured,
    Rewards,
    Sitting,
    World,
    credit,
    weights_of,
)
from rlcourse.checks.judging.trial import IDLE, OVERSPENT, Trial
from rlcourse.checks.proving.proof import stub_of
from rlcourse.student.patience import patience
from rlcourse.tasks.dialects import Dialect, dialect, known_beforehand

EXERCISE = exercises.get("train_policy")
CONTEST = EXERCISE.contest
WORLD = World({"One?": "#### 1", "Two?": "#### 2"}, {}, 0.5)


def rewards(budget=10) -> Rewards:
    return Rewards(WORLD, CONTEST.right, budget)


def test_a_reward_costs_one_completion_each():
    given = rewards()
    assert given(["One?", "Two?", "One?"], ["#### 1", "#### 1", "1"]).tolist() == [1, 0, 0]
    assert len(given.asked) == given.first == 3


def test_more_than_the_budget_is_refused_as_a_whole_and_costs_nothing():
    given = rewards(5)
    given(["One?"] * 4, ["#### 1"] * 4)
    with pytest.raises(RuntimeError, match="budget of 5"):
        given(["One?"] * 2, ["#### 1"] * 2)
    assert given.refused and len(given.asked) == 4
    assert given(["One?"], ["#### 1"]).tolist() == [1]


@pytest.mark.parametrize("questions, completions", [
    (["Three?"], ["#### 3"]), (["One?"], []), ("One?", "#### 1"), (["One?"], [1]), (None, None),
    (["One?"] * 5000, ["#### 1"] * 5000),
])  # fmt: skip
def test_a_call_that_is_none_is_refused_without_counting(questions, completions):
    given = rewards()
    with pytest.raises((TypeError, ValueError)):
        given(questions, completions)
    assert not given.asked


@pytest.mark.parametrize("call", [
    {}, {"call": 8, "arguments": {"questions": ["One?"], "completions": ["#### 1"]}},
    {"call": 7}, {"call": 7, "arguments": [1]}, {"call": 7, "arguments": {"asked": []}},
])  # fmt: skip
def test_a_forged_call_is_answered_with_an_error(call):
    sitting = Sitting(rewards(), 7)
    assert set(sitting(call, 0)) == {"error"} and not sitting.rewards.asked


def test_every_sitting_has_a_count_of_its_own():
    trial = Trial(EXERCISE, 5)
    first, second = trial.sitting(), trial.sitting()
    question = next(iter(trial.world.problems))
    first.rewards([question], ["#### 1"])
    assert len(first.rewards.asked) == 1 and not second.rewards.asked


def test_a_case_says_nothing_of_its_variant_and_holds_no_answer():
    secret = 98_765_432_109_876_543_210
    trial = Trial(EXERCISE, secret)
    assert str(secret) not in str(trial.case) and "####" not in str(trial.case)
    assert trial.case.arguments["questions"] == list(trial.world.problems)
    assert not set(trial.world.held_out) & set(trial.world.problems)


def test_weights_are_believed_as_far_as_they_have_the_right_form():
    start = {"w": torch.zeros(2, 2)}
    good = {"policy.w": torch.ones(2, 2), "policy.in training mode": False}
    assert isinstance(weights_of(Outcome(after=good), start), dict)
    for bad in (torch.ones(4), torch.ones(2, 2).double(), torch.full((2, 2), float("nan")), "1"):
        assert isinstance(weights_of(Outcome(after={"policy.w": bad}), start), str)
    for others in ({}, {**good, "policy.v": torch.ones(1)}):
        assert isinstance(weights_of(Outcome(after=others), start), str)


def measured(right: int, of=256, floor=0.5) -> Measured:
    return Measured((4,) * right + (0,) * (of - right), (1,) * of, floor=floor)


def test_points_rise_with_the_lower_end_from_the_floor_to_the_last_level():
    shares = [credit(CONTEST, measured(n)) for n in (0, 120, 140, 160, 180, 200, 256)]
    assert shares == sorted(shares) and shares[0] == shares[1] == 0 and shares[-1] == 1
    assert 0 < shares[3] < 1


@pytest.mark.slow
def test_who_writes_nothing_changes_nothing_or_spends_too_much_is_told_so():
    trial = Trial(EXERCISE)
    assert trial.examine(Facts("train_policy"), stub_of(EXERCISE)).unwritten
    for name in (IDLE, OVERSPENT):
        wrong = next(m for m in EXERCISE.mistakes if m.name == name).implementation
        result = trial.examine(describe(wrong), wrong)
        assert result.mistake == name and result.points == 0


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="no alarm on this system")
def test_a_trainer_has_its_seconds_of_a_processor_and_measuring_costs_it_none():
    """To wait costs nothing, to compute does; the judge's own work is on no trainer's account."""

    def computes(policy, questions, reward, completions, seed):
        while True:
            sum(range(1000))

    def waits_and_moves(policy, questions, reward, completions, seed):
        time.sleep(0.5)
        with torch.no_grad():
            next(iter(policy.parameters())).mul_(1.01)

    trial, within = Trial(EXERCISE), partial(patience, 0.3, 0.05)
    late = trial.examine(describe(computes), computes, within)
    assert late.points == 0 and "seconds of a processor" in late.message
    measured = trial.examine(describe(waits_and_moves), waits_and_moves, within).measured
    assert measured is not None and measured.sampled and not measured.fault


def test_the_words_of_an_exception_on_a_hidden_variant_are_not_shown():
    class Telling(Exception):
        pass

    def tells(policy, questions, reward, completions, seed):
        raise Telling(questions[0])

    for variant, shown in ((0, True), (12_345, False)):
        trial = Trial(EXERCISE, variant)
        message = trial.examine(describe(tells), tells).message
        assert (trial.case.arguments["questions"][0] in message) == shown
        assert ("Telling" in message) == shown


# The world


def test_what_is_known_beforehand_is_no_more_than_half_on_every_variant():
    for variant in (0, 1, 2**100 + 7):
        world = CONTEST.world(variant)
        assert world.floor <= 0.5 and len(world.problems) == 1_000 and len(world.held_out) == 256


def test_dialects_differ_and_each_adds_about_half_of_the_doubtful_steps():
    told = Dialect.of(0).meant
    doubtful = 40  # steps of the templates that are no additions
    for seed in range(20):
        spoken = Dialect.of(seed).meant
        assert spoken == Dialect.of(seed).meant and (seed == 0 or spoken != told)
        kept = sum(sign != "+" for steps in spoken.values() for _, sign, _ in steps)
        assert abs(kept - doubtful / 2) <= 2.5


def test_answers_are_those_of_the_dialect():
    task = dialect(3, train_size=200)
    spoken = Dialect.of(3)
    assert all(p.answer == spoken.answer(p) for p in [*task.train, *task.evaluation])
    assert 0.3 < known_beforehand(task.evaluation) < 0.75
    assert not {p.question for p in task.train} & {p.question for p in task.evaluation}
