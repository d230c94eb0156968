"""What the answering side is asked gives nothing away, and what it answers is compared outside."""

import re
from dataclasses import replace

import pytest
import torch

from rlcourse.checks.asking import wire
from rlcourse.checks.asking.calling import Failure, Outcome, call, describe
from rlcourse.checks.asking.case import Case
from rlcourse.checks.judging.exam import Exam
from rlcourse.checks.judging.partial_credit import ALMOST_CREDIT
from rlcourse.exercises import all as all_exercises
from rlcourse.exercises import get as get_exercise
from rlcourse.grading.judging.questions import REPEATED, Questions


def questions_of(name, seed=0):
    exercise = get_exercise(name)
    halves = (Exam(exercise, seed), Exam(exercise, seed, hidden=True))
    return halves, Questions.draw(tuple(exam.cases for exam in halves), seed)


def verdicts(halves, questions, fn, alter=lambda outcome: outcome):
    outcomes = questions.collate(tuple(alter(call(fn, case)) for case in questions.asked()))
    first, second = halves
    n = len(first.cases)
    facts = describe(fn)
    return first.judge(facts, outcomes[:n]), second.judge(facts, outcomes[n:])


@pytest.mark.parametrize("exercise", all_exercises(), ids=lambda e: e.name)
def test_a_question_tells_nothing_but_its_arguments(exercise):
    for case in Exam(exercise, 0).cases:
        other = replace(
            case, label="x", differentiable=(), constants=("y",), atol=9.0, raises=not case.raises
        )
        assert wire.dumps(case.question()) == wire.dumps(other.question())


def test_constants_and_the_others_are_asked_for_alike_in_every_question():
    for exercise in all_exercises():
        asked = {case.tracked for case in Exam(exercise, 0).cases}
        assert asked == {bool(exercise.differentiable or exercise.constants)}


@pytest.mark.slow
@pytest.mark.parametrize("name", ["ppo_clip_loss", "value_loss", "gae", "kl_shaped_rewards"])
def test_leaving_out_gradients_in_what_a_question_calls_constant_earns_nothing(name):
    halves, questions = questions_of(name)
    exercise = get_exercise(name)

    def leaking(**arguments):
        value = exercise.reference(**arguments)
        first = value[0] if isinstance(value, tuple) else value
        extra = sum(t.sum() for n, t in arguments.items() if n in exercise.constants)
        first = first + 0 * extra + (extra - extra.detach())
        return (first, *value[1:]) if isinstance(value, tuple) else first

    asked = iter(questions.asked())

    def lie(outcome):
        question = next(asked)
        hidden = {n: None for n in (*question.constants, *question.differentiable)}
        return replace(outcome, gradients={**outcome.gradients, **hidden})

    for result in verdicts(halves, questions, leaking, lie):
        assert not result.passed and result.score <= ALMOST_CREDIT


def test_a_few_cases_of_each_half_come_twice_those_with_chance_first():
    (visible, hidden), questions = questions_of("sample_tokens")
    n = len(visible.cases)
    again = questions.order[n + len(hidden.cases) :]
    assert sorted(i < n for i in again) == [False] * REPEATED + [True] * REPEATED
    assert all("generator" in questions.cases[i].arguments for i in again)
    assert set(questions.order) == set(range(n + len(hidden.cases)))


def test_what_is_not_repeatable_is_seen_whatever_the_process_says_of_itself():
    halves, questions = questions_of("mean_reward")

    def noisy(rewards):
        return rewards.mean() * (1 + 1e-7 * torch.rand(()).double())

    for result in verdicts(halves, questions, noisy, lambda o: replace(o, repeatable=True)):
        assert not result.passed and "two different results" in result.message


def test_a_repeat_that_time_ran_out_on_is_no_proof_of_anything():
    case = Case("", {"x": torch.ones(2)})
    questions = Questions((case,), (0, 0))
    late = Outcome(error=Failure("TimeoutError", "the function ran too long"))
    (found,) = questions.collate((Outcome(value=1.0), late))
    assert found.repeatable is None and found.value == 1.0
    (found,) = questions.collate((Outcome(value=1.0), Outcome(value=2.0)))
    assert found.repeatable is False


@pytest.mark.parametrize(
    "gradients",
    [{"y": torch.ones(2)}, {"x": "text"}, {"x": torch.ones(3)}, {"x": torch.ones(2).long()}],
    ids=["of nothing", "text", "shape", "whole numbers"],
)
def test_gradients_that_are_none_are_refused(gradients):
    questions = Questions((Case("", {"x": torch.ones(2)}),), (0,))
    with pytest.raises(ValueError, match="gradient"):
        questions.collate((Outcome(gradients=gradients),))


def numbers_in(value):
    """The numbers of an answer, as a message could show them."""
    if isinstance(value, dict | list | tuple):
        parts = value.values() if isinstance(value, dict) else value
        return set().union(*map(numbers_in, parts))
    if not isinstance(value, float) and not torch.is_tensor(value):
        return set()
    flat = torch.as_tensor(value).double().flatten()[:200].abs()
    shown = {f"{x:.{digits}g}" for x in flat.tolist() for digits in (3, 4, 5, 6)}
    return {text for text in shown if len(text.replace(".", "").lstrip("0")) > 2 and "." in text}


def altered(value, how):
    if torch.is_tensor(value):
        return how(value) if value.is_floating_point() else value
    if isinstance(value, float):
        return how(torch.tensor(value, dtype=torch.float64)).item()
    return type(value)(altered(v, how) for v in value) if type(value) in (list, tuple) else value


ALMOST = {
    "doubled": lambda x: 2 * x, "shifted": lambda x: x + 0.5, "none": lambda x: 0 * x,
    "negated": lambda x: -x, "not a number": lambda x: x * torch.nan,
    "as float32": torch.Tensor.float,
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("how", ALMOST.values(), ids=ALMOST)
@pytest.mark.parametrize("lesson", ["02", "06", "07"])
def test_what_is_said_of_hidden_cases_holds_no_right_number(lesson, how):
    """Who answers wrongly on purpose, again and again, reads nothing off the feedback."""
    for exercise in all_exercises():
        if exercise.lesson.startswith(lesson) and not exercise.suspects:
            exam = Exam(exercise, 5, hidden=True)
            right = numbers_in([[o.value, o.gradients] for o in exam.expected])
            outcomes = [replace(o, value=altered(o.value, how)) for o in exam.expected]
            said = exam.judge(describe(exercise.reference), outcomes).message
            for label in (case.label for case in exam.cases):
                said = said.replace(label, "")
            assert not right & set(re.findall(r"\d+\.\d+", said)), said
