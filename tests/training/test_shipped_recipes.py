"""The recipes that come with the package, and the environment's choice of a policy."""

import pytest

from rlcourse.errors import UserError
from rlcourse.training import load_recipe, shipped_recipes

EMBEDDED = [n for n in shipped_recipes() if not n.startswith(("gsm8k_", "calculator_"))]
CALCULATOR = [name for name in shipped_recipes() if name.startswith("calculator_")]


@pytest.mark.parametrize("name", EMBEDDED)
def test_every_recipe_of_the_embedded_task_loads_and_is_named_for_what_it_does(name):
    recipe = load_recipe(name)
    assert recipe.algorithm == name
    assert recipe.task == "word_problems" and recipe.policy == "tiny"


@pytest.mark.parametrize("name", CALCULATOR)
def test_the_recipes_of_lesson_14_load_and_are_named_for_what_they_do(name):
    recipe = load_recipe(name)
    assert recipe.algorithm == name.removeprefix("calculator_")
    assert recipe.task == "calculator" and recipe.policy == "tiny"


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


def test_swapped_letters_are_recognized():
    with pytest.raises(UserError, match=r"no recipe 'gsop': did you mean 'gspo'\?"):
        load_recipe("gsop")
