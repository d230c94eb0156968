"""A method is one row of METHODS: with it recipes, both loops and plans know the algorithm."""

import inspect
import re
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from rlcourse import algorithms
from rlcourse.errors import UserError
from rlcourse.planning.plan import plan
from rlcourse.training import load_recipe, load_run, train
from rlcourse.training.recipes.listing import list_recipes
from rlcourse.training.recipes.methods import METHODS, Method, name_of, resolved
from rlcourse.training.recipes.settings import Recipe
from rlcourse.trl_engine.settings import require_possible

ROWS = list(METHODS.items())


def squared_loss(logprobs, advantages, mask):
    """Not a good idea, and nobody's: the squared distance from the advantages."""
    return ((logprobs.exp() - advantages[:, None]).square() * mask).mean()


def best_in_group(rewards, group_size):
    groups = rewards.reshape(-1, group_size)
    return (groups == groups.max(1, keepdim=True).values).float().flatten()


@pytest.fixture
def toy(monkeypatch):
    monkeypatch.setitem(METHODS, "toy", Method(squared_loss, best_in_group, compares_groups=True))


def test_a_new_row_trains(toy, policy, task, recipe, tmp_path):
    run = train(recipe("toy", steps=2), tmp_path / "run", policy=policy, task=task, progress=False)
    assert [step["step"] for step in run.metrics] == [1, 2]
    before, after = policy.model.state_dict(), run.policy.model.state_dict()
    assert any(not torch.equal(before[name], after[name]) for name in before)
    assert load_run(tmp_path / "run").recipe.algorithm == "toy"


def test_a_new_row_is_a_recipes_algorithm(toy, recipe, tmp_path):
    path = tmp_path / "mine.yaml"
    path.write_text("algorithm: toy\n")
    assert load_recipe(path) == load_recipe("toy") == Recipe.of({"algorithm": "toy"})
    assert load_recipe(path).method.loss is squared_loss and "toy " in list_recipes()
    with pytest.raises(UserError, match="toy compares the completions of a question"):
        recipe("toy", group_size=1)
    with pytest.raises(UserError, match="algorithm cannot be 'toi': did you mean 'toy'"):
        Recipe.of({"algorithm": "toi"})


def test_a_new_row_has_a_plan_and_is_refused_by_trl_in_a_sentence(toy, recipe):
    same = plan(recipe("toy"), "T4").memory.peak
    assert same == plan(recipe("grpo"), "T4").memory.peak
    with pytest.raises(
        UserError, match=r"TRL does not do toy as this course does: leave out --engine trl$"
    ):
        require_possible(recipe("toy"))


@pytest.mark.parametrize(("name", "method"), ROWS)
def test_every_function_of_a_row_is_one_of_the_lessons(name, method):
    for function in (method.loss, method.advantages, *method.functions):
        if function is not None:
            assert resolved(function).__name__ == name_of(function)
            assert name_of(function) in algorithms.__all__


@pytest.mark.parametrize(("name", "method"), ROWS)
def test_facts_agree_with_the_functions(name, method):
    """What a signature shows and a fact says must be the same."""
    if method.advantages is not None:
        asked = inspect.signature(resolved(method.advantages)).parameters
        assert method.compares_groups == ("group_size" in asked)
        assert method.critic == ("values" in asked)
    if not method.samples:
        assert not (method.compares_groups or method.resamples or method.keeps_rewarded)
    assert method.compares_pairs == method.uses("preference_pairs")
    assert method.resamples == method.uses("informative_groups")
    assert method.trains_policy or method.compares_pairs


@pytest.mark.parametrize("method", METHODS)
def test_every_method_has_its_place_on_the_map(method):
    text = (Path(__file__).parents[2] / "course" / "map.md").read_text("utf-8")
    family, notation = text.split("## One notation")[0], text.split("| method |")[1]
    assert re.search(rf"\b{method}\b", family)
    assert f"| `{method}` |" in notation or method == "reward_model"


def test_a_recipe_is_read_without_torch():
    code = "import sys; from rlcourse.training import load_recipe; load_recipe('ppo', lr=1e-4)"
    code += "; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0
