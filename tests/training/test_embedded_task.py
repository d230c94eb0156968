"""Every method of the trainer makes the embedded model better at the embedded task."""

import pytest

from rlcourse.evaluation import greedy_accuracy
from rlcourse.tasks import extract_answer, load_task
from rlcourse.training import load_recipe, train

SMALL = {"eval_problems": 0, "device": "cpu", "warm_start": None}
ROLLOUTS = ("rejection_sampling", "reinforce", "rloo", "ppo", "grpo", "dr_grpo", "dapo", "gspo")
SHORT = {name: {"steps": 15, "prompts_per_step": 8} for name in ROLLOUTS} | {
    "dpo": {"steps": 25, "questions": 200}
}


@pytest.fixture(scope="module")
def solved():
    """Gives the share of a hundred held-out problems that a policy solves greedily."""
    problems = load_task("word_problems").evaluation[:100]
    return lambda policy: greedy_accuracy(policy, problems, 64, extract_answer)


@pytest.fixture(scope="module")
def before(warm_start, solved):
    return solved(warm_start)


@pytest.mark.slow
@pytest.mark.parametrize("algorithm", SHORT)
def test_every_method_raises_the_accuracy_on_held_out_problems(
    warm_start, before, solved, algorithm
):
    recipe = load_recipe(algorithm, **SMALL, **SHORT[algorithm])
    run = train(recipe, policy=warm_start, progress=False)
    # Perturbed: .13, and then .66 (dpo) to .90; three more seeds are in the README.
    assert before < 0.5
    assert solved(run.policy) > before + 0.15


@pytest.mark.slow
def test_a_reward_model_tells_right_answers_from_wrong_ones(warm_start):
    recipe = load_recipe("reward_model", **SMALL | {"eval_problems": 100}, questions=200, steps=40)
    run = train(recipe, policy=warm_start, progress=False)
    assert run.pair_accuracy.low > 0.6
