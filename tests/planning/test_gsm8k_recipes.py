"""The GSM8K recipes: named for what they do, alike where they should be, and each really runs."""

import os
import re
from pathlib import Path

import pytest
from llamas import byte_tokenizer, random_model

from rlcourse.planning.memory import total
from rlcourse.planning.plan import plan, settings
from rlcourse.planning.work import GSM8K_QUESTION, QUESTION_CHARACTERS
from rlcourse.policy import Policy
from rlcourse.tasks import extract_strict_tagged_answer, strict_format_reward
from rlcourse.training import load_recipe, shipped_recipes, train
from rlcourse.training.recipes.methods import METHODS
from rlcourse.training.recipes.recipe import SHIPPED

DATA = Path(
    os.environ.get("RLCOURSE_GSM8K", Path(__file__).resolve().parents[3] / "shared" / "gsm8k")
)
RECIPES = [name for name in shipped_recipes() if name.startswith("gsm8k_")]
OF_METHODS = [name for name in RECIPES if name.removeprefix("gsm8k_") in METHODS]
OCCASIONS = ["gsm8k_class", "gsm8k_t4"]
MODELS = [name for name in RECIPES if name not in (*OF_METHODS, *OCCASIONS)]
HUB = {
    "smollm2_135m": "HuggingFaceTB/SmolLM2-135M-Instruct",
    "smollm2_360m": "HuggingFaceTB/SmolLM2-360M-Instruct",
    "smollm2_1.7b": "HuggingFaceTB/SmolLM2-1.7B-Instruct",
    "qwen2.5_0.5b": "Qwen/Qwen2.5-0.5B-Instruct",
    "qwen2.5_1.5b": "Qwen/Qwen2.5-1.5B-Instruct",
}
with_data = pytest.mark.skipif(not (DATA / "train.jsonl").exists(), reason="needs GSM8K's files")


def model_named(name):
    """ "smollm2_1.7b" of "gsm8k_smollm2_1.7b_published"."""
    return re.sub(r"^gsm8k_|_(published|published_shuffled|lora)$", "", name)


def test_every_model_has_a_recipe():
    assert {model_named(name) for name in MODELS} == set(HUB)


@pytest.mark.parametrize("name", RECIPES)
def test_a_recipe_does_what_its_name_says(name):
    recipe = load_recipe(name)
    assert recipe.task == "gsm8k" and recipe.micro_batch
    assert recipe.dtype == ("float16" if name == "gsm8k_t4" else "bfloat16")
    if name in (*OF_METHODS, *OCCASIONS):
        assert name in OCCASIONS or recipe.algorithm == name.removeprefix("gsm8k_")
        assert recipe.policy == HUB["qwen2.5_0.5b"] and recipe.extract is None
    else:
        extract = "strict_tagged" if "_published" in name else "tagged"
        assert recipe.policy == HUB[model_named(name)] and recipe.extract == extract
        assert bool(recipe.lora) == name.endswith("_lora")


PUBLISHED = ("gsm8k_smollm2_1.7b_published", "gsm8k_smollm2_1.7b_published_shuffled")


def test_the_published_versions_differ_in_order_and_length_alone():
    one, other = (load_recipe(name).to_dict() for name in PUBLISHED)
    assert {key for key in one if one[key] != other[key]} == {"shuffle", "rewards"}


def test_the_published_prompt_keeps_its_worked_example_and_its_spaces():
    lines = load_recipe("gsm8k_smollm2_1.7b_published").system.split("\n")
    assert len(lines) == 21 and lines[0] == lines[18] == ""
    assert all(line.startswith("    ") for line in (*lines[1:18], *lines[19:]))
    assert lines[1].endswith(" and ") and lines[-1] == "    "
    example = "\n".join(line.strip() for line in lines[11:18])
    assert example.startswith("Question: Joel has 24 cookies.")
    answer = example.partition("\n")[2]
    assert extract_strict_tagged_answer(answer) == "12"
    assert strict_format_reward([answer, example]).tolist() == [0.5, 0.0]


@pytest.mark.parametrize("name", RECIPES)
def test_head_and_guide_tell_what_rlcourse_plan_prints(name):
    found, cells = plan(name), [f"`{name}`"]
    fit = next(fit for fit in found.fits if fit.fits)
    told = f"{found.memory.peak / 1e9:.1f} GB; {total(fit.run) / 3600:.1f} hours on one"
    text = (SHIPPED / f"{name}.yaml").read_text("utf-8")
    assert f"\n# Estimate of rlcourse plan: {told} {fit.gpu}.\nalgorithm:" in text
    guide = (Path(__file__).parents[2] / "course" / "gsm8k.md").read_text("utf-8")
    cells.append(f"{found.memory.peak / 1e9:.1f}")
    for fit in (fit for fit in found.fits if fit.gpu in ("L4", "A100-40GB", "H100")):
        hours = f"{total(fit.run) / 3600:.1f} h" if fit.fits else None
        refused = "does not fit" if fit.changes is None else f"`{settings(fit.changes)}`"
        cells.append(hours or refused)
    assert f"| {' | '.join(cells)} |" in guide


def test_the_recipe_for_a_t4_fits_one():
    assert plan("gsm8k_t4", "T4").fits[0].fits


@pytest.mark.parametrize("name", [name for name in RECIPES if name.endswith("_lora")])
def test_adapters_fit_a_gpu_of_16_gb(name):
    assert plan(name, "RTX-4080").fits[0].fits


# Each of them, from its first line to its report, on real questions with a small random model.

SMALLER = {"steps": 2, "prompts_per_step": 2, "group_size": 2, "max_tokens": 6, "questions": 2}
SMALLER |= {"eval_problems": 2, "eval_samples": 2, "overlong_buffer": 0, "device": "cpu"}


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    """Directories of a random Llama and a random Qwen2."""
    place = tmp_path_factory.mktemp("models")
    for kind in ("llama", "qwen2"):
        Policy(random_model(kind), byte_tokenizer()).save(place / kind)
    return {"HuggingFaceTB": str(place / "llama"), "Qwen": str(place / "qwen2")}


@pytest.mark.slow
@with_data
@pytest.mark.parametrize("name", RECIPES)
def test_a_recipe_runs_from_start_to_report(name, models, tmp_path):
    recipe = load_recipe(name)
    if recipe.lora:
        pytest.importorskip("peft")
    changes = SMALLER | {"policy": models[recipe.policy.split("/")[0]], "data": str(DATA)}
    if recipe.algorithm == "distill":
        changes["teacher"] = models["Qwen"]
    if recipe.algorithm == "dapo":
        changes["resample"] = 1
    if recipe.algorithm in ("dpo", "reward_model"):
        changes["pairs"] = write_pairs(tmp_path)  # a random model's answers are all alike: wrong
    changes = {key: value for key, value in changes.items() if key in recipe.settings()}
    run = train(recipe.but(**changes), tmp_path / "run", progress=False)
    assert [step["step"] for step in run.metrics] == [1, 2]
    assert (tmp_path / "run" / "report.html").stat().st_size > 1000
    kept = load_recipe(tmp_path / "run" / "recipe.yaml")
    untouched = ("dtype", "micro_batch", "gradient_checkpointing", "system", "extract", "lora")
    untouched += ("format", "shuffle", "old_logprobs", "reference_every", "eval_top_p")
    untouched = [key for key in untouched if key in recipe.settings()]
    assert all(getattr(kept, key) == getattr(recipe, key) for key in untouched)
    if recipe.algorithm != "reward_model":
        assert run.after.problems == 2


def write_pairs(place):
    from rlcourse.tasks import load_task
    from rlcourse.training import Pair
    from rlcourse.training import write_pairs as write

    problems = load_task("gsm8k", data=DATA).train[:24]
    pairs = [Pair(p.question, p.answer[-9:], "no idea #### 0") for p in problems]
    write(place / "pairs.jsonl", pairs)
    return str(place / "pairs.jsonl")


@with_data
def test_the_lengths_that_plans_assume_fit_the_questions():
    from rlcourse.tasks import load_task

    questions = [len(p.question) for p in load_task("gsm8k", data=DATA).train]
    assert len(questions) == 7473
    mean = sum(questions) / len(questions)
    assert mean / QUESTION_CHARACTERS == pytest.approx(GSM8K_QUESTION[0], abs=1)
    assert max(questions) / GSM8K_QUESTION[1] > 3
