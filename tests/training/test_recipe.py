"""Recipes: what they accept, and how they refuse the rest."""

from dataclasses import fields

import pytest

from rlcourse.errors import UserError
from rlcourse.training.methods import METHODS
from rlcourse.training.optimizer import learning_rate
from rlcourse.training.recipe import (
    Recipe,
    load_recipe,
    parse_overrides,
    shipped_recipes,
)


def test_every_method_has_a_shipped_recipe():
    assert set(METHODS) <= set(shipped_recipes())
    for name in METHODS:
        assert load_recipe(name).algorithm == name


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
    assert recipe.rewards == {"correctness": 1.0, "format": 0.2}
    assert recipe.task_options == {"level": "hard"}


@pytest.mark.parametrize(
    ("assignment", "sentence"),
    [
        ("stpes=20", "no key 'stpes': did you mean 'steps'?"),
        ("group=4", "did you mean 'group_size'?"),
        ("algorithm=gprpo", "algorithm cannot be 'gprpo': did you mean 'grpo'?"),
        ("schedule=square", "choose from constant, linear, cosine"),
        ("rewards.corectness=1", "no reward 'corectness': did you mean 'correctness'?"),
        ("steps=ten", "steps must be a whole number, not 'ten'"),
        ("steps=2.5", "steps must be a whole number, not 2.5"),
        ("steps=true", "steps must be a whole number, not True"),
        ("steps=0", "steps must be at least 1, not 0; the nearest is steps=1"),
        ("steps=null", "steps must be a whole number, not None"),
        ("lr=0", "lr must be greater than 0"),
        ("lr=.nan", "lr must be finite"),
        ("top_p=1.5", "top_p must be at most 1.0, not 1.5; the nearest is top_p=1.0"),
        ("betas=0.9", "betas must be two numbers"),
        ("betas=[0.9, 1.0]", "betas must be at most"),
        ("group_size=1", "group_size must be at least 2"),
        ("minibatches=1000", "minibatches must be at most 128"),
        ("lr.x=1", "'lr' holds one value"),
        ("lr", "write key=value"),
        ("=3", "write key=value"),
        ("policy=3", "policy must be text, not 3"),
    ],
)
def test_wrong_keys_and_values_are_refused_with_the_nearest_right_one(assignment, sentence):
    with pytest.raises(UserError) as error:
        load_recipe("grpo", **parse_overrides([assignment]))
    assert sentence in str(error.value)
    assert "\n" not in str(error.value)


def test_a_wrong_recipe_name_is_answered_with_the_nearest():
    with pytest.raises(UserError, match=r"no recipe 'gpro': did you mean 'grpo'\?"):
        load_recipe("gpro")
    with pytest.raises(UserError, match=r"no recipe file missing\.yaml"):
        load_recipe("missing.yaml")


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("algorithm: [", "is not valid YAML"),
        ("just words", "must hold lines such as"),
        ("algoritm: grpo", "did you mean 'algorithm'?"),
        ("lr: fast", "lr must be a number, not 'fast'"),
    ],
)
def test_a_bad_recipe_file_is_named(tmp_path, text, sentence):
    path = tmp_path / "bad.yaml"
    path.write_text(text)
    with pytest.raises(UserError) as error:
        load_recipe(path)
    assert sentence in str(error.value)


def test_a_recipe_file_that_is_not_text_is_refused(tmp_path):
    path = tmp_path / "bad.yaml"
    path.write_bytes(b"\xff\xfe\x00algorithm")
    with pytest.raises(UserError, match="cannot be read"):
        load_recipe(path)


def test_help_names_every_field():
    text = Recipe.help()
    for name, value in Recipe().to_dict().items():
        assert f"\n{name}" in f"\n{text}", (name, value)


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
    first, plain = recipe.warm_start_recipe(), load_recipe("sft")
    assert first.method.imitates and first.eval_problems == 0
    shared = {f.name for f in fields(Recipe) if getattr(first, f.name) != getattr(plain, f.name)}
    assert shared == {
        *("policy", "task_options", "extract", "system", "seed", "device", "dtype"),
        *("micro_batch", "lora", "eval_problems"),
    }
    for name in shared - {"eval_problems"}:
        assert getattr(first, name) == getattr(recipe, name)
    assert load_recipe("grpo", warm_start=None).warm_start_recipe() is None


def test_the_learning_rate_is_a_function_of_the_step_alone():
    recipe = load_recipe("grpo", lr=0.1, warmup=3, steps=7, schedule="linear")
    rates = [learning_rate(recipe, step) for step in range(7)]
    assert rates == pytest.approx([0.025, 0.05, 0.075, 0.1, 0.075, 0.05, 0.025])
    constant = recipe.but(schedule="constant", warmup=0)
    assert {learning_rate(constant, step) for step in range(7)} == {0.1}
