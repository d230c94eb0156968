"""Stories of several steps: solved rightly, of small numbers, apart from what is held out."""

import re
from random import Random

import pytest

from rlcourse.tasks import correctness_reward, load_task, stories
from rlcourse.tasks.stories import LIMIT, SLOP, answer, drill, problems
from rlcourse.tasks.word_problems import CLEAN, OPERATIONS, Slop

SUM = re.compile(r"(\d+)([-+*/])(\d+)=(\d+)")


@pytest.fixture(scope="module")
def told():
    return problems(400, 0)


def test_every_step_is_a_true_sum_and_the_last_is_the_answer(told):
    for story in told:
        sums = SUM.findall(story.answer)
        assert len(sums) == len(story.steps) == len(story.answer.splitlines()) - 1
        for a, operation, b, result in sums:
            assert OPERATIONS[operation](int(a), int(b)) == int(result) <= LIMIT
            assert operation != "/" or int(a) % int(b) == 0
        assert story.answer.endswith(f"#### {sums[-1][-1]}")
        assert correctness_reward([story.answer], [story.answer]).item() == 1


def test_numbers_of_the_question_are_all_that_a_solution_begins_with(told):
    """Except for the words that stand for one, such as half and twice."""
    words = {"half": "2", "Half": "2", "twice": "2", "three times": "3", "four times": "4"}
    for story in told:
        known = set(re.findall(r"\d+", story.question))
        known |= {number for word, number in words.items() if word in story.question}
        for a, _, b, result in SUM.findall(story.answer):
            assert {a, b} <= known, story
            known.add(result)


def test_none_is_trained_on_and_evaluated_on(told):
    task = load_task("stories", seed=0)
    held_out = {story.key for story in task.evaluation}
    assert not held_out & {story.key for story in (*told, *task.train)}
    assert not held_out & {story.key for story in problems(400, 7)}
    assert [p.question for p in task.train[:9]] == [
        p.question for p in load_task("stories").train[:9]
    ]


def test_a_careless_answer_goes_on_with_its_own_results(told):
    rng = Random(0)
    always = Slop(add=1.0, stop=0.0, format=0.0, slip=0.0)
    for story in told[:50]:
        assert answer(story, CLEAN, rng) == story.answer
        sums = SUM.findall(answer(story, always, rng))
        assert {operation for _, operation, _, _ in sums} == {"+"}
        assert all(int(a) + int(b) == int(c) for a, _, b, c in sums)
    right = [answer(s, SLOP, rng).split()[-1] == s.answer.split()[-1] for s in told]
    assert 0.1 < sum(right) / len(right) < 0.4  # .26 of 600 where it was measured


def test_a_drill_has_sums_alone():
    problem = drill(Random(0))
    asked = re.findall(r"\d+[-+*/]\d+", problem.question)
    assert len(asked) == stories.SUMS
    for a, operation, b, result in SUM.findall(problem.answer):
        assert OPERATIONS[operation](int(a), int(b)) == int(result)
