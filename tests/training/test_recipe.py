"""Recipes: what they accept, and how they refuse the rest."""

from inspect import signature

import pytest

from rlcourse.errors import UserError
from rlcourse.training.recipes.methods import METHODS, resolved
from rlcourse.training.recipes.recipe import (
    load_recipe,
    parse_overrides,
    warm_start_of,
)
from rlcourse.training.recipes.settings import class_of


def test_a_recipe_survives_its_own_yaml(tmp_path):
    recipe = load_recipe("grpo", lr="1e-4", betas=[0.8, 0.9], task_options={"level": "hard"})
    path = tmp_path / "mine.yaml"
    path.write_text(recipe.to_yaml())
    assert load_recipe(path) == recipe


def test_overrides_are_read_as_yaml_and_typed_by_the_field():
    overrides = parse_overrides(
        ["lr=1e-4", "steps=20", "top_k=null", "rewards.format=0.2", "task_options.level=hard"]
    )
    recipe = load_recipe("grpo", **overrides)
    assert recipe.lr == 1e-4 and isinstance(recipe.lr, float)
    assert recipe.steps == 20 and recipe.top_k is None
    assert recipe.rewards == {"correctness": 1.0, "format": 0.2, "length": 0.0}
    assert recipe.task_options == {"level": "hard"}


@pytest.mark.parametrize(
    ("recipe", "assignment", "sentence"),
    [
        ("grpo", "gamma=0.5", "grpo has no setting gamma: it is one of ppo"),
        ("grpo", "clip_high=0.9", "grpo has no setting clip_high: it is one of dapo, distill"),
        ("dr_grpo", "beta=0.1", "no setting beta: it is one of ppo, grpo, dpo"),
        ("sft", "group_size=4", "sft has no setting group_size"),
        ("dpo", "minibatches=2", "dpo has no setting minibatches"),
        ("ppo", "lora.rank=4", "ppo has no setting lora"),
        ("reward_model", "eval_samples=4", "reward_model has no setting eval_samples"),
    ],
)
def test_another_methods_setting_is_refused_and_says_whose_it_is(recipe, assignment, sentence):
    with pytest.raises(UserError) as error:
        load_recipe(recipe, **parse_overrides([assignment]))
    assert sentence in str(error.value) and "\n" not in str(error.value)


def test_settings_agree_with_the_functions_that_ask_for_them():
    """What a loss or an estimator asks for is a setting of its method, and the other way round."""
    by_name = {"clip_low": "clip", "eps": "advantage_eps"}
    optional = {"clip", "clip_high", "cap", "advantage_eps", "gamma", "lam", "beta"}
    for algorithm, method in METHODS.items():
        functions = [method.loss, method.advantages, *method.functions]
        asked = {p for f in functions if f for p in signature(resolved(f)).parameters}
        asked = {by_name.get(name, name) for name in asked}
        if method.taught:  # of its γ lesson 14 says why it is 0
            asked -= {"gamma"}
        assert optional & asked == optional & class_of(algorithm).settings().keys(), algorithm


def test_another_algorithm_takes_over_the_settings_that_it_has():
    recipe = load_recipe("ppo", algorithm="grpo", lr=1e-5)
    assert recipe.method.compares_groups and recipe.beta == load_recipe("ppo").beta
    with pytest.raises(UserError, match="no setting gamma"):
        load_recipe("ppo", algorithm="grpo", gamma=0.9)


@pytest.mark.parametrize(
    ("assignment", "sentence"),
    [
        ("stpes=20", "no key 'stpes': did you mean 'steps'?"),
        ("algorithm=gprpo", "algorithm cannot be 'gprpo': did you mean 'grpo'?"),
        ("schedule=square", "choose from constant, linear, cosine"),
        ("rewards.corectness=1", "no reward 'corectness': did you mean 'correctness'?"),
        ("steps=ten", "steps must be a whole number, not 'ten'"),
        ("steps=true", "steps must be a whole number, not True"),
        ("steps=0", "steps must be at least 1, not 0; the nearest is steps=1"),
        ("lr=.nan", "lr must be finite"),
        ("top_p=1.5", "top_p must be at most 1.0, not 1.5; the nearest is top_p=1.0"),
        ("betas=0.9", "betas must be two numbers"),
        ("group_size=1", "group_size must be at least 2"),
        ("minibatches=1000", "minibatches must be at most 128"),
        ("lr.x=1", "'lr' holds one value"),
        ("lr", "write key=value"),
        ("policy=3", "policy must be text, not 3"),
    ],
)
def test_wrong_keys_and_values_are_refused_with_the_nearest_right_one(assignment, sentence):
    with pytest.raises(UserError) as error:
        load_recipe("grpo", **parse_overrides([assignment]))
    assert sentence in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("text", ["End with #### N.", "Answer: give N", "#### N", "a [b] or {c}"])
def test_a_sentence_on_the_command_line_is_taken_as_it_is(text):
    assert parse_overrides([f"system={text}"]) == {"system": text}
    assert parse_overrides([f"system='{text}'"]) == {"system": text}


def test_a_wrong_recipe_name_is_answered_with_the_nearest():
    with pytest.raises(UserError, match=r"no recipe 'gpro': did you mean 'grpo'\?"):
        load_recipe("gpro")
    with pytest.raises(UserError, match=r"no recipe file missing\.yaml"):
        load_recipe("missing.yaml")


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("algorithm: [", "is not valid YAML"),
        ("\xff\xfe\x00algorithm", "cannot be read"),
        ("just words", "must hold lines such as"),
        ("algoritm: grpo", "did you mean 'algorithm'?"),
        ("lr: fast", "lr must be a number, not 'fast'"),
    ],
)
def test_a_bad_recipe_file_is_named(tmp_path, text, sentence):
    path = tmp_path / "bad.yaml"
    path.write_text(text, "latin-1")
    with pytest.raises(UserError) as error:
        load_recipe(path)
    assert sentence in str(error.value)


def test_a_warm_start_takes_over_all_that_decides_where_and_on_what_it_runs():
    recipe = load_recipe(
        "grpo",
        warm_start="sft",
        policy="some/model",
        task_options={"level": "hard"},
        extract="lenient",
        system="Think.",
        seed=7,
        device="cpu",
        dtype="bfloat16",
        micro_batch=3,
        lora={"rank": 4},
        lr=1e-5,
    )
    first, plain = warm_start_of(recipe), load_recipe("sft")
    assert first.method.imitates and first.eval_problems == 0
    shared = {name for name, value in plain if getattr(first, name) != value}
    assert shared == {
        *("policy", "task_options", "extract", "system", "seed", "device", "dtype"),
        *("micro_batch", "lora", "eval_problems"),
    }
    for name in shared - {"eval_problems"}:
        assert getattr(first, name) == getattr(recipe, name)
    assert warm_start_of(load_recipe("grpo", warm_start=None)) is None
