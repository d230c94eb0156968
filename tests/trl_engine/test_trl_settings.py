"""A recipe as TRL's arguments: nothing forgotten, nothing left to a default that differs."""

import pytest
from echo import echo_recipe, echo_task, having

from rlcourse.errors import UserError
from rlcourse.training.recipes.fields import Surroundings, facts_of
from rlcourse.training.recipes.methods import METHODS
from rlcourse.trl_engine.rewards import reward_functions
from rlcourse.trl_engine.settings import (
    Batches,
    parse_settings,
    require_free,
    require_possible,
    trl_arguments,
)

trl = pytest.importorskip("trl", reason="the extra `trl` is not installed")

TRAINERS = {name: m.trl.trainer for name, m in METHODS.items() if m.trl.trainer}
# Another value of each setting that becomes an argument of TRL's.
CHANGED = {
    **{"algorithm": "gspo", "seed": 7, "steps": 9, "prompts_per_step": 10, "group_size": 6},
    **{"max_tokens": 5, "temperature": 0.7, "top_k": 3, "top_p": 0.9, "num_iterations": 2},
    **{"minibatches": 2, "lr": 1e-5, "betas": (0.8, 0.9), "weight_decay": 0.2},
    **{"max_grad_norm": 0.3, "clip": 0.1, "clip_high": 0.3, "beta": 0.3, "micro_batch": 1},
    **{"optimizer": "adamw_8bit", "gradient_checkpointing": True, "dtype": "bfloat16"},
}
# The others are read by code that both engines share, or by what makes these functions' arguments.
READ_BY_US = Surroundings.model_fields.keys() - CHANGED.keys() - {"algorithm"}
READ_BY_US |= {"schedule", "warmup", "old_logprobs", "lora", "overlong_buffer"}


@pytest.mark.parametrize("algorithm", sorted(TRAINERS))
def test_each_setting_is_an_argument_or_ours_or_known_to_the_local_engine_alone(algorithm):
    """And what TRL would ignore is refused, so that a new setting cannot be forgotten here."""
    recipe = echo_recipe(
        algorithm, **having(algorithm, beta=0.1, resample=None), prompts_per_step=6
    )
    plain = trl_arguments(recipe, 1)
    for name, field in recipe.settings().items():
        if name in CHANGED and not (name == "algorithm" and algorithm != "grpo"):
            assert trl_arguments(recipe.but(**{name: CHANGED[name]}), 1) != plain, name
        else:
            assert (
                bool(facts_of(field)["local"]) + (name in READ_BY_US) + (name == "algorithm") == 1
            ), name


def test_what_is_refused_names_a_method_that_trl_does():
    assert {m.trl.instead for m in METHODS.values()} <= {"", *TRAINERS}


# batches


@pytest.mark.parametrize("processes", [1, 4])
@pytest.mark.parametrize("micro_batch", [None, 3, 8])
@pytest.mark.parametrize("minibatches", [1, 2])
def test_a_step_has_the_recipes_rows_on_any_number_of_processes(
    processes, micro_batch, minibatches
):
    passes = {"minibatches": minibatches, "num_iterations": 2}
    recipe = echo_recipe("grpo", prompts_per_step=24, micro_batch=micro_batch, **passes)
    arguments, batches = trl_arguments(recipe, processes), Batches.of(recipe, processes)
    a_pass = arguments["per_device_train_batch_size"] * processes
    an_update = a_pass * arguments["gradient_accumulation_steps"]
    rows = 24 * recipe.group_size
    assert a_pass * arguments["steps_per_generation"] == rows == an_update * minibatches
    assert arguments["max_steps"] == recipe.steps * 2 * minibatches
    assert batches.per_device <= (micro_batch or 10**9)


def test_rows_that_do_not_divide_are_refused():
    with pytest.raises(UserError, match=r"3 × 5 = 15 rows does not divide by 2 processes"):
        Batches.of(echo_recipe(prompts_per_step=3, group_size=5), 2)


# refusals


@pytest.mark.parametrize(
    ("algorithm", "changes", "names"),
    [
        ("ppo", {}, "algorithm=grpo"),
        ("reinforce", {}, "algorithm=rloo"),
        ("rejection_sampling", {}, "leave out --engine trl"),
        ("dapo", {}, "set resample=null"),
        ("dapo", {"resample": None, "minibatches": 2}, "minibatches=1"),
        ("rloo", {"num_iterations": 2}, "num_iterations=1"),
        ("sft", {}, "leave out --engine trl"),
        ("dpo", {"beta": 0.1}, "leave out --engine trl"),
        ("grpo", {"device": "cuda:1"}, "CUDA_VISIBLE_DEVICES"),
        ("cispo", {}, "algorithm=dapo"),
        ("grpo", {"sampler_staleness": 1}, "does not do sampler_staleness=1 as this course does"),
        ("grpo", {"truncate": {"cap": 2}}, "does not do truncate="),
        ("grpo", {"overlong_filter": True}, "does not do overlong_filter=True as this course does"),
        (
            "grpo",
            {"reference_every": 2, "beta": 0.1},
            "does not do reference_every=2 as this course does",
        ),
        ("grpo", {"advantage_eps": 1e-8}, "set advantage_eps=0.0001"),
    ],
)
def test_what_trl_does_otherwise_is_refused_with_what_to_do(algorithm, changes, names):
    with pytest.raises(UserError, match=names):
        require_possible(echo_recipe(algorithm, **changes))


# --trl


def test_settings_of_trls_are_yaml():
    settings = parse_settings(["use_vllm=true", "vllm_mode=server", "vllm_server_port=8001"])
    assert settings == {"use_vllm": True, "vllm_mode": "server", "vllm_server_port": 8001}
    require_free(settings, trl_arguments(echo_recipe(), 1), trl.GRPOConfig)


@pytest.mark.parametrize(
    ("setting", "sentence"),
    [
        ("use_vlm=true", "did you mean 'use_vllm'"),
        ("learning_rate=1", "follows from the recipe"),
        ("output_dir=x", "follows from the recipe or the command line"),
    ],
)
def test_a_setting_that_is_unknown_or_the_recipes_is_refused(setting, sentence):
    with pytest.raises(UserError, match=sentence):
        require_free(parse_settings([setting]), trl_arguments(echo_recipe(), 1), trl.GRPOConfig)


def test_a_setting_without_a_value_is_refused():
    with pytest.raises(UserError, match="write key=value"):
        parse_settings(["use_vllm"])


@pytest.mark.slow
def test_lengths_are_a_reward_of_trls_too():
    recipe = echo_recipe("grpo", rewards={"length": 0.25})
    functions, weights = reward_functions(recipe, echo_task())
    assert [function.__name__ for function in functions] == ["correctness", "length"]
    assert weights == [1.0, 0.25]
    ids = [[7] * n for n in (19, 20, 250, 251)]
    assert functions[1](completions=[""] * 4, completion_ids=ids) == [0.0, 0.5, 0.5, 0.0]
