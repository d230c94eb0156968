"""Lesson 01: what its attempts earn, and the contrast between two teachers."""

import pytest

from rlcourse.policy import Policy
from rlcourse.tasks import correctness_reward, format_reward, load_task
from rlcourse.training import load_recipe, train


def test_rewards_of_the_attempts():
    reference = "3 * 6 = 18\n18 - 4 = 14\n#### 14"
    attempts = [reference, "6 + 6 + 6 - 4 = 14\n#### 14.0", "#### 5", "18 - 4 = 14", "?\n#### 14"]
    assert correctness_reward(attempts, [reference] * 5).tolist() == [1, 1, 0, 0, 1]
    forms = [
        "<think>3 * 6 = 18\n18 - 4 = 14</think>\n<answer>14</answer>",
        "<think>3 * 6 = 18</think> <answer>unknown</answer>",
        "<answer>14</answer> <think>because</think>",
        "<think><think><think> <answer>14</answer>",
        "14",
    ]
    assert format_reward(forms).tolist() == pytest.approx([0.5, 0.4, 0.3, 0.3, 0.0])


@pytest.mark.weekly
def test_imitators_resemble_their_teachers():
    recipe = load_recipe(
        "sft", steps=30, prompts_per_step=32, eval_problems=64, device="cpu", policy="tiny", seed=3
    )
    base, after = Policy.load("tiny", device="cpu"), {}
    for teacher in ("sloppy", "clean"):
        task = load_task("word_problems", seed=3, teacher=teacher)
        after[teacher] = train(recipe, policy=base, task=task, progress=False).after
    sloppy, clean = after["sloppy"], after["clean"]
    # Three seeds: by .42 at least, and pass@8 by .36.
    assert float(clean.accuracy) > float(sloppy.accuracy) + 0.2
    assert float(sloppy.pass_at[8]) > float(sloppy.accuracy) + 0.15, "it can do more than it does"
