"""The recipes that come with the package, and the environment's choice of a policy."""

import pytest

from rlcourse.training import load_recipe, shipped_recipes
from rlcourse.training.recipes.recipe import warm_start_of

EMBEDDED = [name for name in shipped_recipes() if not name.startswith(("gsm8k_", "laptop"))]


@pytest.mark.parametrize("name", EMBEDDED)
def test_every_recipe_of_the_embedded_model_is_named_for_what_it_does(name):
    recipe = load_recipe(name)
    assert recipe.algorithm == name.removeprefix("calculator_") and recipe.policy == "tiny"
    assert recipe.task == ("calculator" if name.startswith("calculator_") else "word_problems")


def test_the_laptops_recipe_imitates_with_the_same_model_first():
    recipe = load_recipe("laptop", policy="models/smollm2-135m", seed=1)
    first = warm_start_of(recipe)
    assert recipe.task == "word_problems" and first.algorithm == "sft" and first.steps == 36
    assert (first.policy, first.seed, first.micro_batch) == ("models/smollm2-135m", 1, 16)


def test_the_environment_names_the_policy_where_nothing_else_does(monkeypatch, tmp_path):
    monkeypatch.setenv("RLCOURSE_POLICY", "some/model")
    assert load_recipe("grpo").policy == "some/model"
    assert load_recipe("grpo").warm_start == "sft"
    assert load_recipe("grpo", policy="tiny").policy == "tiny"
    assert load_recipe("gsm8k_grpo").policy == "Qwen/Qwen2.5-0.5B-Instruct"
    saved = tmp_path / "recipe.yaml"  # as a run directory holds it
    saved.write_text(load_recipe("grpo", policy="tiny").to_yaml())
    assert load_recipe(saved).policy == "tiny"
    monkeypatch.setenv("RLCOURSE_POLICY", "")
    assert load_recipe("grpo").policy == "tiny"
