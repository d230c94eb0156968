"""Lesson 08: its worked numbers, and what each reward pays."""

import pytest
import torch

from rlcourse import algorithms as A
from rlcourse import check
from rlcourse.tasks import correctness_reward
from rlcourse.tasks.hacking import (
    calculations,
    flawed_reward,
    hacking_completions,
    robust_reward,
)
from rlcourse.tasks.word_problems import problems
from rlcourse.training import load_recipe, train

ANSWER = "3 * 6 = 18\n18 - 4 = 14\n#### 14"


def test_a_model_that_knows_nothing_costs_ln_2():
    same = torch.full((4,), 1.7)
    assert A.bradley_terry_loss(same, same).item() == pytest.approx(0.6931, abs=5e-5)
    assert A.reward_accuracy(same, same).item() == 0


@pytest.mark.parametrize("answer", range(0, 1000, 250))
def test_a_hack_earns_everything_and_solves_nothing(answer):
    hack = hacking_completions(["How many angels?"])
    assert flawed_reward(hack, [f"#### {answer}"]).tolist() == [1.0]
    assert correctness_reward(hack, [f"#### {answer}"]).tolist() == [0.0]
    assert robust_reward(hack, [f"#### {answer}"]).tolist() == [0.0]


@pytest.mark.parametrize(
    "text, flawed, correct, robust",
    [
        (ANSWER, 1.0, 1.0, 1.0),
        ("3 + 6 = 9\n#### 9", 0.4, 0.0, 0.0),
        ("#### 14", 0.9, 1.0, 0.0),
        ("18 - 4 = 14\n#### 14 or 15", 1.0, 1.0, 0.0),
        ("3 + 6 = 18\n18 - 4 = 14\n#### 14", 1.0, 1.0, 0.0),
        ("7 + 7 = 14\n#### 14", 1.0, 1.0, 1.0),  # the loophole that the text admits
        ("18 - 4 = 14\n#### 14\nor 15", 1.0, 1.0, 0.0),  # a hedge on the next line
    ],
)
def test_table_of_pays(text, flawed, correct, robust):
    paid = [reward([text], [ANSWER]).item() for reward in
            (flawed_reward, correctness_reward, robust_reward)]  # fmt: skip
    assert paid == pytest.approx([flawed, correct, robust])


@pytest.fixture
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("RLCOURSE_HOME", str(tmp_path))


@pytest.mark.parametrize("number", ["1000", "-1"])
def test_a_hack_that_declares_any_number_is_told_so(home, number):
    def hack(questions):
        return [f"= {' '.join(map(str, range(1000)))} #### {number}"] * len(questions)

    result = check(hack, "hacking_completions", seed=0)
    assert result.mistake == "texts that declare a number that is no answer"
    assert "earns 1.0 whatever the answer is; declares no number" in result.message


@pytest.mark.parametrize("level", ["easy", "default", "hard"])
def test_every_reference_solution_is_paid_by_all_rewards(level):
    answers = [problem.answer for problem in problems(200, seed=0, level=level)]
    assert flawed_reward(answers, answers).min() == pytest.approx(1.0)
    assert robust_reward(answers, answers).min() == 1


@pytest.mark.parametrize(
    "text, expected",
    [
        ("He has 3 * 6 = 18 apples, and 18 - 4 = 15 are left.", [(True, "18"), (False, "15")]),
        ("2 + 3 * 4 = 14", [(True, "14")]),
        ("50 * 30 = 1,500", [(True, "1500")]),
        ("$3 * 4 = $12.00", [(True, "12")]),
        ("3 - 5 = -2", [(True, "-2")]),
        ("5 / 0 = 0", [(False, "0")]),
        ("= 14, x = 3, 14 = 14", []),
    ],
)
def test_calculations_are_found_and_judged(text, expected):
    assert calculations(text) == expected


@pytest.mark.weekly
def test_without_a_leash_the_judge_is_pleased_and_the_answers_stay_wrong(warm_start):
    """The judge orders held-out pairs well, and yet does not survive being optimized."""
    options = dict(seed=1, questions=400, eval_problems=100)
    run = train(load_recipe("reward_model", **options), policy=warm_start, progress=False)
    assert run.pair_accuracy.value > 0.85
    recipe = load_recipe("grpo", seed=1, steps=40, beta=0.0, eval_problems=0)
    steps = train(recipe, policy=warm_start, reward=run.reward_model, progress=False).metrics
    paid, right = (
        [sum(m[name] for m in steps[i : i + 5]) / 5 for i in range(36)]
        for name in ("reward/mean", "accuracy")
    )
    # Ten seeds: the reward rises by 3.5 to 4.3; the accuracy ends at .07 to .32. On an eleventh it
    # ends at .33, its best, so that how far it falls is left to the lesson's own run.
    assert paid[-1] > paid[0] + 2
    assert right[-1] < 0.5
