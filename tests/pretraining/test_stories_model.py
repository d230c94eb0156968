"""The model in course/stories: what it is said to be at the start, and that GRPO lifts it."""

from pathlib import Path

import pytest

from rlcourse.policy import Policy
from rlcourse.pretraining.build import Asked, grpo_recipe
from rlcourse.pretraining.sizes import SIZES
from rlcourse.tasks import load_task
from rlcourse.training import evaluate_policy, load_recipe, train

HOME = Path(__file__).resolve().parents[2] / "course" / "stories"
PROBLEMS = 48


def measured(policy):
    """Greedy and sampled accuracy, and how far each sampled one is known."""
    found = evaluate_policy(policy, load_task("stories").evaluation[:PROBLEMS], samples=4)
    return found.accuracy.value, found.sampled_accuracy.value


@pytest.fixture(scope="module")
def start():
    policy = Policy.load(str(HOME), device="cpu")
    return policy, measured(policy)


def test_it_can_do_the_sums_and_has_its_teacher_s_habit(start):
    """.045 greedy and .23 sampled, of 200 problems; these are 48, with four samples each."""
    policy, (greedy, sampled) = start
    assert sum(p.numel() for p in policy.model.parameters()) == 1_081_856
    assert sum(f.stat().st_size for f in HOME.iterdir()) < 5e6
    assert greedy < 0.25 and 0.08 < sampled < 0.45


def test_its_recipe_is_what_build_model_writes(tmp_path):
    recipe = load_recipe(HOME / "grpo.yaml")
    assert (HOME.parents[1] / recipe.policy).samefile(HOME)
    asked = Asked("stories", None, None, None, 0, ())
    (tmp_path / "grpo.yaml").write_text(grpo_recipe(tmp_path, asked, SIZES["stories"]))
    assert load_recipe(tmp_path / "grpo.yaml", policy=recipe.policy) == recipe


@pytest.mark.weekly
@pytest.mark.parametrize("seed", [3, 4])
def test_grpo_lifts_both_accuracies(start, seed):
    """Seeds 0 to 2: all of 200 greedy; sampled from .23 to .28 up to .96 and more."""
    policy, (greedy, sampled) = start
    recipe = load_recipe(HOME / "grpo.yaml").but(policy=str(HOME), seed=seed, eval_problems=0)
    trained = train(recipe.but(device="cpu"), policy=policy, progress=False).policy
    after = measured(trained)
    assert after[0] > greedy + 0.5 and after[1] > sampled + 0.3
