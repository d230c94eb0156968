"""What a contest counts, measures and says, without training anything."""

import signal
import time
from functools import partial

import pytest
import torch

from rlcourse import exercises
from rlcourse.checks.asking.calling import Facts, describe
from rlcourse.checks.judging.contest import Measured, Sitting, World, credit
from rlcourse.checks.judging.trial import IDLE, OVERSPENT, Trial
from rlcourse.checks.proving.proof import stub_of
from rlcourse.policy import Rollouts
from rlcourse.policy.trainee import Holder, Trainee
from rlcourse.student.patience import patience
from rlcourse.tasks.dialects import Dialect, dialect, known_beforehand

EXERCISE = exercises.get("train_policy")
CONTEST = EXERCISE.contest
ANSWERS = {"One?": "#### 1", "Two?": "#### 2"}
WORLD = World(ANSWERS, {}, 0.5)


class Speaker(torch.nn.Module):
    """Says one of three words to any question."""

    words = ("#### 1", "#### 2", "what?")

    def __init__(self):
        super().__init__()
        self.logits = torch.nn.Parameter(torch.tensor([0.3, 0.0, -0.2]))

    format_prompt = staticmethod(str)

    def sample(self, prompts, group_size, max_tokens, generator):
        n = len(prompts) * group_size
        chances = self.logits.detach().softmax(0).expand(n, 3)
        tokens = torch.multinomial(chances, 1, generator=generator)
        there = torch.ones(n, 1, dtype=torch.bool)
        return Rollouts(tokens, there, tokens, there, chances.gather(1, tokens).log(), group_size)

    def decode(self, rollouts):
        return [self.words[token] for token in rollouts.tokens[:, 0]]

    def logprobs(self, rollouts):
        return self.logits.log_softmax(0)[rollouts.tokens]


def holder(budget=10) -> Holder:
    def reward(questions, texts):
        return torch.tensor([float(ANSWERS[q] == t) for q, t in zip(questions, texts, strict=True)])

    return Holder(Speaker(), reward, budget)


def test_an_answer_costs_one_completion_and_brings_its_reward():
    held = holder()
    answers = Trainee(held).answer(["One?", "Two?"], 4)
    asked = ["One?"] * 4 + ["Two?"] * 4
    right = [float(ANSWERS[q] == text) for q, text in zip(asked, answers.texts, strict=True)]
    assert answers.rewards.tolist() == held.rewards == right and held.asked == asked


def test_more_than_the_budget_is_refused_as_a_whole_and_costs_nothing():
    held = holder(5)
    Trainee(held).answer(["One?"], 4)
    with pytest.raises(RuntimeError, match="budget of 5"):
        Trainee(held).answer(["One?"], 2)
    assert held.refused and len(held.asked) == 4
    Trainee(held).answer(["One?"])
    assert len(held.asked) == 5


def test_a_loss_of_its_log_probs_has_the_policys_own_gradient():
    """Also after another batch was read, and over several batches until the next step."""
    held = holder(8)
    policy = Trainee(held)
    batches = policy.answer(["One?"], 4), policy.answer(["Two?"], 4)
    logprobs = [policy.logprobs(batch) for batch in batches]
    (-(batches[0].rewards * logprobs[0].sum(1)).mean() + logprobs[1].exp().mean()).backward()
    same = Speaker()
    own = [same.logprobs(batch) for batch in batches]
    (-(batches[0].rewards * own[0].sum(1)).mean() + own[1].exp().mean()).backward()
    torch.testing.assert_close(held.policy.logits.grad, same.logits.grad)
    assert policy.step(1e-2) == pytest.approx(same.logits.grad.norm().item())
    assert held.policy.logits.grad is None and not torch.equal(held.policy.logits, same.logits)


def test_what_a_trainer_writes_into_an_answer_is_not_what_is_learned():
    def gradient(change) -> torch.Tensor:
        held = holder(4)
        policy = Trainee(held)
        answers = policy.answer(["One?"], 4)
        change(answers)
        (-(answers.mask * policy.logprobs(answers)).mean()).backward()
        return held.policy.logits.grad

    def forge(answers):
        answers.tokens.fill_(2)
        answers.texts[:] = ["#### 1"] * 4

    assert torch.equal(gradient(lambda answers: None), gradient(forge))


@pytest.mark.parametrize("do, given", [
    ("answer", {"questions": ["Three?"], "group_size": 1}),
    ("answer", {"questions": ["One?"], "group_size": -1}),
    ("answer", {"questions": ["One?"], "group_size": 257}),
    ("answer", {"questions": [], "group_size": 1}),
    ("answer", {"questions": [1], "group_size": 1}),
    ("answer", {"questions": ["One?"], "group_size": 1, "completions": ["#### 1"]}),
    ("logprobs", {"batch": 1}), ("logprobs", {"batch": -1}), ("logprobs", {"batch": "0"}),
    ("learn", {"batch": 0, "weights": torch.ones(2)}), ("learn", {"batch": 0, "weights": 1.0}),
    ("learn", {"batch": 1, "weights": torch.ones(1, 1)}),
    ("step", {"lr": -1.0, "max_norm": 1.0}), ("step", {"lr": 1.0, "max_norm": 1.0}),
    ("step", {"lr": float("nan"), "max_norm": 1.0}), ("step", {"lr": "1", "max_norm": 1.0}),
    ("policy", {}), ("__init__", {}),
])  # fmt: skip
def test_a_call_that_is_none_is_refused_and_changes_nothing(do, given):
    held = holder()
    Trainee(held).answer(["One?"])
    before = held.policy.logits.detach().clone()
    with pytest.raises((TypeError, ValueError, KeyError)):
        held(do, **given)
    assert len(held.asked) == len(held.batches) == 1 and not held.steps
    assert torch.equal(held.policy.logits, before) and held.policy.logits.grad is None


def test_a_gradient_that_is_no_number_reaches_no_weight():
    held = holder()
    policy = Trainee(held)
    loss = (policy.logprobs(policy.answer(["One?"])) * float("nan")).sum()
    with pytest.raises(ValueError, match="infinite or NaN"):
        loss.backward()
    assert held.broken and held.policy.logits.grad is None


@pytest.mark.parametrize("sign", [1, -1])
def test_a_first_step_that_lowers_right_answers_is_known(sign):
    held = holder(8)
    policy = Trainee(held)
    answers = policy.answer(["One?"], 8)
    assert 0 < answers.rewards.sum() < 8
    (-sign * (answers.rewards * policy.logprobs(answers).sum(1)).mean()).backward()
    policy.step(1e-2)
    assert held.turned == (sign < 0)


@pytest.mark.parametrize("call", [
    {}, {"call": 8, "arguments": {"do": "answer", "questions": ["One?"], "group_size": 1}},
    {"call": 7}, {"call": 7, "arguments": [1]}, {"call": 7, "arguments": {"asked": []}},
    {"call": 7, "arguments": {"do": ["answer"]}}, {"call": 7, "arguments": {"self": 1}},
])  # fmt: skip
def test_a_forged_call_is_answered_with_an_error(call):
    sitting = Sitting(holder(), CONTEST.case(WORLD, 7))
    assert set(sitting(call, 0)) == {"error"} and not sitting.holder.asked


def test_every_sitting_has_a_policy_and_a_count_of_its_own():
    trial = Trial(EXERCISE, 5)
    first, second = trial.sitting().holder, trial.sitting().holder
    Trainee(first).answer([next(iter(trial.world.problems))])
    assert len(first.asked) == 1 and not second.asked and first.policy is not second.policy


def test_a_case_says_nothing_of_its_variant_and_holds_no_answer():
    secret = 98_765_432_109_876_543_210
    trial = Trial(EXERCISE, secret)
    assert str(secret) not in str(trial.case) and "####" not in str(trial.case)
    assert trial.case.arguments["questions"] == list(trial.world.problems)
    assert not set(trial.world.held_out) & set(trial.world.problems)


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

    def computes(policy, questions, completions, seed):
        while True:
            sum(range(1000))

    def waits_and_moves(policy, questions, completions, seed):
        time.sleep(0.5)
        policy.logprobs(policy.answer(questions[:2])).sum().backward()
        policy.step(1e-3)

    trial, within = Trial(EXERCISE), partial(patience, 0.3, 0.05)
    late = trial.examine(describe(computes), computes, within)
    assert late.points == 0 and "seconds of a processor" in late.message
    result = trial.examine(describe(waits_and_moves), waits_and_moves, partial(patience, 10.0))
    assert result.measured.sampled and not result.measured.fault
    assert "2 completions of 2 questions drawn and rewarded, 1 steps" in result.message


def test_the_words_of_an_exception_on_a_hidden_variant_are_not_shown():
    class Telling(Exception):
        pass

    def tells(policy, questions, completions, seed):
        raise Telling(questions[0])

    for variant, shown in ((0, True), (12_345, False)):
        trial = Trial(EXERCISE, variant)
        message = trial.examine(describe(tells), tells).message
        assert (trial.case.arguments["questions"][0] in message) == shown
        assert ("Telling" in message) == shown


# The world


@pytest.mark.parametrize("variant", [1, 2, 2**100 + 7])
def test_no_more_than_half_of_a_variant_is_known_beforehand(variant):
    """Not even to those who have studied the public dialect, which would be right on 0.70 of the
    first dialect of variant 2 that resists the others."""
    world, public = CONTEST.world(variant), Dialect.of(2)
    assert len(world.problems) == 1_000 and len(world.held_out) == 256
    tasks = (dialect(1_000 * variant + i, train_size=1) for i in range(100))
    of_it = next(
        t.evaluation
        for t in tasks
        if world.held_out == {p.question: p.answer for p in t.evaluation}
    )
    assert known_beforehand(of_it, public) <= world.floor == 0.5


def test_the_check_trains_in_the_dialect_of_the_lesson():
    problems = dialect(2, train_size=1_000).train
    assert CONTEST.world(0).problems == {p.question: p.answer for p in problems}


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
