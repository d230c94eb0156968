"""A plan's time, its verdict on each GPU, and the command that prints both."""

import re

import pytest
import torch
from launches import Launches
from test_plan_memory import lines_of, random_batch, small_policy
from typer.testing import CliRunner

from rlcourse.cli import app
from rlcourse.errors import UserError
from rlcourse.planning.memory import memory_of
from rlcourse.planning.plan import plan, plan_table, remedies
from rlcourse.planning.shapes import model_shape
from rlcourse.planning.timing import (
    BANDWIDTH_SHARE,
    COMPUTE_SHARES,
    GPUS,
    KERNELS,
    KERNELS_OUTSIDE,
    LAUNCH,
    seconds_of,
)
from rlcourse.planning.work import work_of
from rlcourse.policy.decoding import CopiedPrompts
from rlcourse.training import load_recipe, shipped_recipes
from rlcourse.training.networks.optimizer import autocast


def kernels(policy):
    """Operations of one decoding step that make something new, as a GPU would launch them."""
    batch = random_batch()
    with torch.no_grad(), autocast("cpu", "bfloat16"):
        decoder = CopiedPrompts(policy.model, batch.prompt_mask[::4], 4)
        decoder.read_prompts(batch.prompt_tokens[::4])
        decoder.read(batch.tokens[:, 0])
        with Launches() as count:
            decoder.read(batch.tokens[:, 1])
    return count.n


@pytest.mark.parametrize("lora", [False, True])
def test_as_many_kernels_are_launched_as_plans_count(lora):
    few, many = (kernels(small_policy("bfloat16", lora, num_hidden_layers=n)) for n in (2, 4))
    assert (many - few) / 2 == KERNELS[lora]
    assert few - 2 * KERNELS[lora] == pytest.approx(KERNELS_OUTSIDE, abs=4)


def test_the_seconds_of_a_step_can_be_checked_by_hand():
    """Qwen2.5-0.5B on an L4: launches bound its decoding without a graph, arithmetic its passes."""
    recipe = load_recipe("gsm8k_grpo", static_cache=False)
    work, gpu = work_of(recipe, completion=200), GPUS["L4"]
    prompt = work.lengths.prompt
    found = {line.name: line.amount for line in seconds_of(work, gpu)[0]}
    flops, matrices = COMPUTE_SHARES["bfloat16"] * 121e12, model_shape("Qwen/Qwen2.5-0.5B").matrices
    prefill = 2 * matrices * 4 * prompt / flops
    assert found["sampling"] == pytest.approx(prefill + 200 * (24 * 46 + 34) * LAUNCH)
    tokens = 4 * prompt + 32 * 200  # a micro-batch is a group, so each prompt is read once
    assert found["forward"] == pytest.approx(2 * matrices * tokens / flops)
    assert "forward again" not in found  # the log-probs of the only update are known
    output_layer = 151_936 * 896
    assert found["logits again"] == pytest.approx(2 * output_layer * 32 * 200 / flops)
    assert found["backward"] == 2 * found["forward"]
    assert found["optimizer"] == pytest.approx(28 * 494_032_768 / (BANDWIDTH_SHARE * 300e9))


def test_what_a_recipe_adds_costs_what_it_adds():
    base = load_recipe("gsm8k_grpo")

    def lines(**changes):
        found = plan(base.but(**changes), "H200").fits[0]
        return {line.name: line.amount for line in (*found.step, *found.run)}

    plain = lines()
    assert lines(beta=0.1)["reference"] == plain["forward"]
    assert lines(num_iterations=3)["backward"] == pytest.approx(3 * plain["backward"])
    assert lines(algorithm="dapo", resample=2)["sampling"] == 3 * plain["sampling"]
    assert "forward again" not in lines(micro_batch=None)
    assert lines(algorithm="dpo", beta=0.1)["pairs"] > 0 and "sampling" not in lines(
        algorithm="sft"
    )


# fit


@pytest.mark.parametrize("name", ["gsm8k_smollm2_1.7b", "gsm8k_ppo"])
@pytest.mark.parametrize("gpu", ["T4", "RTX-4080", "L4", "A100-40GB"])
def test_what_is_said_to_fit_fits_and_what_comes_before_it_does_not(name, gpu):
    recipe = load_recipe(name).but(micro_batch=None, gradient_checkpointing=False)
    (fit,) = plan(recipe, gpu).fits
    usable = 0.92 * GPUS[gpu].memory * 1e9
    start = recipe if GPUS[gpu].bfloat16 else recipe.but(dtype="float16")
    tried = [{}, *remedies(start)]
    peaks = [memory_of(work_of(start.but(**changes))).peak for changes in tried]
    fitting = [changes for changes, peak in zip(tried, peaks, strict=True) if peak <= usable]
    if fit.changes is None:
        assert not fitting and not fit.run
    else:
        precision = {} if GPUS[gpu].bfloat16 else {"dtype": "float16"}
        assert fit.changes == precision | fitting[0]
        assert plan(recipe.but(**fit.changes), gpu).fits[0].fits


@pytest.mark.parametrize("name", shipped_recipes())
def test_every_shipped_recipe_has_a_plan_that_can_be_printed(name):
    found = plan(name)
    text = plan_table(found)
    assert text.startswith("ESTIMATE, nothing was measured")
    assert text.splitlines()[1].startswith("ONE GPU HAS BEEN TRIED")
    amounts = [line.amount for line in lines_of(found.work)]
    assert min(amounts) > 0
    assert all(gpu in text for gpu in GPUS)


# as a command


def run(*arguments):
    return CliRunner().invoke(app, ["plan", *arguments])


def test_a_plan_says_how_small_a_lift_its_evaluation_shows():
    told = {n: plan(load_recipe("gsm8k_class", eval_problems=n), "L4") for n in (50, 1319, 0)}
    assert re.search(r"smallest lift +14\.01  .* 50 problems x 4 samples", plan_table(told[50]))
    assert re.search(r"smallest lift +2\.73  .* 1,319 problems", plan_table(told[1319]))
    assert "lift" not in plan_table(told[0])
    assert "lift" not in plan_table(plan("reward_model", "L4")), "it has accuracy of pairs"


def test_the_command_prints_a_table():
    table = run("gsm8k_grpo", "micro_batch=4", "--gpu", "l4")
    assert table.exit_code == 0 and "KV cache" in table.stdout and "L4 " in table.stdout
    shorter = run("gsm8k_grpo", "micro_batch=4", "--gpu", "l4", "--completion", "180")
    assert "completions of 180 (at most 300)" in shorter.stdout
    assert "15% of 65 TFLOP/s" in run("gsm8k_grpo", "--gpu", "T4").stdout, "T4s have no bfloat16"


@pytest.mark.parametrize(
    "arguments, said",
    [
        (["gsm8k_grpo", "--gpu", "A100"], "choose one of T4, .*A100-40GB"),
        (["gsm8k_grop"], "did you mean"),
        (["gsm8k_grpo", "policy=./nowhere"], "no model directory"),
    ],
)
def test_what_cannot_be_planned_is_said_in_one_sentence(arguments, said):
    result = run(*arguments)
    assert result.exit_code == 1 and isinstance(result.exception, UserError)
    assert re.search(said, str(result.exception))
