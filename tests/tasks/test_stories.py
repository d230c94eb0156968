"""Stories of several steps: solved rightly, of small numbers, apart from what is held out."""

import re

import pytest

from rlcourse.tasks import correctness_reward, load_task
from rlcourse.tasks.stories import LIMIT, problems
from rlcourse.tasks.word_problems import OPERATIONS

SUM = re.compile(r"(\d+)([-+*/])(\d+)=(\d+)")


@pytest.fixture(scope="module")
def told():
    return problems(400, 0)


def test_every_step_is_a_true_sum_and_the_last_is_the_answer(told):
    for story in told:
        sums = SUM.findall(story.answer)
        assert len(sums) == len(story.answer.splitlines()) - 1
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
