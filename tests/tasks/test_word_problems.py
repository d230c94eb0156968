"""Word problems: right, reproducible, and never both trained on and evaluated on."""

import re
from random import Random

import pytest

from rlcourse.errors import UserError
from rlcourse.tasks import load_task, word_problems
from rlcourse.tasks.word_problems import CLEAN, LEVELS, Slop

EVERY_LEVEL = pytest.mark.parametrize("level", LEVELS)


def key(problem):
    return problem.template, problem.numbers


@EVERY_LEVEL
def test_training_and_evaluation_share_no_problem_whatever_the_seeds(level):
    train = {key(p) for s in range(3) for p in word_problems.problems(1500, s, level, "train")}
    for seed in range(3):
        held_out = {key(p) for p in word_problems.problems(200, seed, level, "evaluation")}
        assert not train & held_out


def test_demonstrations_answer_training_problems_only():
    held_out = {key(p) for p in word_problems.problems(256, 0, "default", "evaluation")}
    assert not held_out & {key(p) for p in word_problems.demonstrations(1000, 0)}


@EVERY_LEVEL
@pytest.mark.parametrize("split", ["train", "evaluation"])
def test_every_line_of_an_answer_is_a_true_equation_and_the_last_is_its_result(level, split):
    for problem in word_problems.problems(300, 5, level, split):
        *lines, last = problem.answer.split("\n")
        for line in lines:
            a, op, b, result = re.fullmatch(r"(\d+) ([-+*/]) (\d+) = (\d+)", line).groups()
            exact = {"+": int(a) + int(b), "-": int(a) - int(b), "*": int(a) * int(b)}
            assert (int(result) * int(b) == int(a)) if op == "/" else exact[op] == int(result)
            assert 1 <= int(result) <= LEVELS[level].limit
        assert last == f"#### {result}"
        assert problem.target == result


def test_every_number_of_a_problem_stands_in_its_question():
    for problem in word_problems.problems(500, 2, "hard"):
        assert re.findall(r"\d+", problem.question) == [str(n) for n in problem.numbers]


def test_levels_order_the_number_of_steps():
    steps = {
        level: [p.answer.count("=") for p in word_problems.problems(300, 0, level)]
        for level in LEVELS
    }
    assert max(steps["easy"]) == 2
    assert set(steps["default"]) == {1, 2, 3}
    assert set(steps["hard"]) == {3}


def test_same_seed_draws_the_same_task_and_another_seed_another():
    first, again, other = (load_task("word_problems", seed=s) for s in (3, 3, 4))
    assert first == again
    assert first.train != other.train
    assert first.demonstrations != other.demonstrations


def test_no_question_is_drawn_twice():
    task = load_task("word_problems", level="easy")
    for problems in (task.train, task.evaluation, task.demonstrations):
        assert len({p.question for p in problems}) == len(problems)


def test_clean_demonstrations_are_the_true_answers():
    for problem in load_task("word_problems", teacher="clean").demonstrations:
        assert problem.answer == word_problems.sloppy_answer(problem, CLEAN, Random(0))
        assert problem.answer.endswith(f"#### {problem.target}")


@pytest.mark.parametrize(
    ("habit", "shows"),
    [
        (Slop(1, 0, 0, 0), lambda truth, demo: not re.search(r" [-*/] ", demo)),
        (Slop(0, 1, 0, 0), lambda truth, demo: demo.count("=") < truth.count("=")),
        (Slop(0, 0, 1, 0), lambda truth, demo: demo == truth.replace("####", "Answer:")),
        (Slop(0, 0, 0, 1), lambda truth, demo: demo.split()[4] != truth.split()[4]),
    ],
    ids=["add", "stop", "format", "slip"],
)
def test_each_habit_shows_where_its_probability_is_one(habit, shows):
    rng = Random(0)
    for problem in word_problems.problems(200, 0, "hard"):
        assert shows(problem.answer, word_problems.sloppy_answer(problem, habit, rng))


@pytest.mark.parametrize("options", [{"level": "harder"}, {"teacher": "x"}, {"levl": "easy"}])
def test_an_unknown_choice_is_named_with_the_choices_there_are(options):
    with pytest.raises(UserError, match=r"choose .+|options are level"):
        load_task("word_problems", **options)
