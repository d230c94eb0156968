"""Every method of the trainer makes the embedded model better at the embedded task."""

import pytest

from rlcourse.training import load_recipe, train

SMALL = {"eval_problems": 100, "eval_samples": 1, "device": "cpu", "warm_start": None}
ROLLOUTS = ("rejection_sampling", "reinforce", "rloo", "ppo", "grpo", "dr_grpo", "dapo", "gspo")
SHORT = {name: {"steps": 15} for name in ROLLOUTS} | {"dpo": {"steps": 25, "questions": 200}}


@pytest.fixture(scope="module")
def start():
    """The embedded model after its supervised warm start."""
    return train("sft", progress=False).policy


@pytest.mark.slow
@pytest.mark.parametrize("algorithm", SHORT)
def test_every_method_raises_the_accuracy_on_held_out_problems(start, algorithm):
    recipe = load_recipe(algorithm, **SMALL, **SHORT[algorithm])
    run = train(recipe, policy=start, progress=False)
    assert float(run.before.accuracy) < 0.3
    assert float(run.after.accuracy) > float(run.before.accuracy) + 0.15


@pytest.mark.slow
def test_a_reward_model_tells_right_answers_from_wrong_ones(start):
    recipe = load_recipe("reward_model", **SMALL, questions=200, steps=40)
    run = train(recipe, policy=start, progress=False)
    assert run.pair_accuracy.low > 0.6
