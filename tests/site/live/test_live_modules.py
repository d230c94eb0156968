"""The modules of the page "Train one" say what the library says. They are asked in Node.js."""

import json
import shutil
import sys
from pathlib import Path

import pytest
import torch
from torch import Tensor

from rlcourse import exercises
from rlcourse.policy import Policy
from rlcourse.tasks import word_problems
from rlcourse.tasks.rewards import extract_answer
from rlcourse.training import load_recipe
from rlcourse.training.data.batches import problems_of_step
from rlcourse.training.recipes.methods import METHODS

SITE = Path(__file__).parents[3] / "course/site"
LIVE = SITE / "live"
sys.path.insert(0, str(SITE))
from live import export  # noqa: E402

pytestmark = pytest.mark.slow
MIRRORED = {  # functions of algorithms.js, and the argument by which they are differentiated
    "reinforce_loss": "logprobs",
    "grpo_loss": "logprobs",
    "dr_grpo_loss": "logprobs",
    "masked_mean": "x",
    "kl_estimates": "",
    "importance_weights": "",
    "group_mean_advantages": "",
    "leave_one_out_advantages": "",
    "group_normalized_advantages": "",
}


@pytest.fixture(scope="module")
def policy(tmp_path_factory):
    """The shipped weights in the library."""
    folder = tmp_path_factory.mktemp("policies") / "warm"
    Policy.load("tiny").save(folder)
    shutil.copy(LIVE / "warm.safetensors", folder / "model.safetensors")
    return Policy.load(folder)


def tensor(answer: dict) -> Tensor:
    return torch.tensor(answer["data"], dtype=torch.float64).reshape(answer["shape"])


def test_world_and_settings_are_the_librarys(ask):
    assert json.loads((LIVE / "world.json").read_text("utf-8")) == json.loads(
        json.dumps(export.world())
    ), "run course/site/live/export.py"
    (said,) = ask({"ask": "recipe"})
    recipe = load_recipe("grpo")
    for name in ("algorithm", "group_size", "lr", "num_iterations", "clip", "beta", "seed"):
        assert said["defaults"][name] == getattr(recipe, name)
    for name, method in said["methods"].items():
        own = METHODS[name]
        assert (own.loss, own.advantages) == (method["loss"], method.get("advantages"))


def numbers(x) -> list:
    """All numbers in lists and dictionaries, in order; None stands for NaN."""
    if isinstance(x, list | dict):
        return [n for part in (x.values() if isinstance(x, dict) else x) for n in numbers(part)]
    return [] if isinstance(x, str) else [float("nan") if x is None else float(x)]


def test_the_cases_of_the_loss_are_the_checks_own():
    shipped = json.loads((LIVE / "cases.json").read_text("utf-8"))
    made = export.cases()
    assert numbers(shipped) == pytest.approx(numbers(made), rel=1e-6, abs=1e-9, nan_ok=True)
    for kind, text in (("cases", "label"), ("mistakes", "name"), ("mistakes", "diagnosis")):
        assert [x[text] for x in shipped[kind]] == [x[text] for x in made[kind]], "run export.py"


EDITS = {  # of the page's loss, and how the notebook's check begins to speak of the same mistake
    (
        "-total",
        "total",
    ): "Your numbers are those of the objective, not the loss: the sign is missing.",
    (
        "min(ratio * adv",
        "max(ratio * adv",
    ): "Your numbers are those of the larger of the two terms.",
    ("- beta", "+ beta"): "Your numbers are those of a KL that is rewarded.",
    ("beta * kl", "kl"): "Your numbers are those of a penalty that is not weighted by β.",
    (
        "max(length, 1)",
        "length",
    ): "Your numbers are those of a division by the length 0 of an empty row.",
    (
        "if (!mask[n][t]) continue;",
        "",
    ): "Your numbers are those of a mean in which padding takes part.",
    ("- 1 - x", "- 2 - x"): "It is not GRPO’s loss, and",  # nobody's mistake has no name
    ("exp(", "expp("): "It stops on the case “different lengths”: expp is not defined.",
    ("return", "return ["): "This is not JavaScript yet: ",
    ("-total / logprobs.length", "[total]"): "On the case “different lengths” it returns an array",
    ("return -", "return NaN * "): "It returns NaN, not a number to learn from, on every case.",
    (
        "let total",
        "logprobs[0][0] = 1; let total",
    ): "It stops on the case “different lengths”: Cannot",
    (
        "let total",
        "fetch('x'); let total",
    ): "It stops on the case “different lengths”: fetch is not a",
    ("let total", "import('x'); let total"): "This is not JavaScript yet: a loss imports nothing.",
    ("", ""): "Right on every case.",
}


def test_a_loss_is_judged_and_its_mistake_named_as_in_the_notebook(ask):
    (found,) = ask({"ask": "judge", "edits": [list(edit) for edit in EDITS]})
    for (edit, said), verdict in zip(EDITS.items(), found, strict=True):
        assert verdict["said"][0].startswith(said), (edit, verdict)
    names = {m.name: m.diagnosis for m in exercises.get("grpo_loss").mistakes}
    named = [verdict["said"] for verdict in found if verdict.get("named")]
    assert len(named) == 6
    for name, diagnosis in named:
        assert names[name.removeprefix("Your numbers are those of ").removesuffix(".")] == diagnosis


def test_a_loss_on_plain_numbers_trains_as_the_method_does(ask):
    """Its slope is measured, the library's is derived; a wrong sign must show."""
    settings = {"num_iterations": 2, "beta": 0.04, "seed": 0}
    own, method, turned = ask(
        {"ask": "train", "steps": 2, "settings": settings, "loss": "GRPO"},
        {"ask": "train", "steps": 2, "settings": settings},
        {"ask": "train", "steps": 1, "settings": settings, "loss": "return logprobs[0][0];"},
    )
    assert own["before"] == own["again"] == method["before"]  # the start is measured at any time
    for one, other in zip(own["history"], method["history"], strict=True):
        for name in ("loss", "grad_norm", "reward", "entropy"):
            assert one[name] == pytest.approx(other[name], rel=1e-3, abs=1e-5), name
    assert turned["history"][0]["grad_norm"] != pytest.approx(
        own["history"][0]["grad_norm"], rel=0.1
    )


@pytest.mark.weekly
def test_the_shipped_weights_are_the_warm_start_of_seed_0(policy):
    """Made anew they say the same of every token; another seed's would not."""
    problems = word_problems.problems(64, seed=1, split="evaluation")
    prompts = [policy.format_prompt(p.question) for p in problems]
    batch = policy.demonstrations(prompts, [p.answer for p in problems])
    made = export.warm_policy()
    with torch.no_grad():
        gap = (policy.logprobs(batch) - made.logprobs(batch)).abs()
    assert gap[batch.mask].mean() < 0.02, "run course/site/live/export.py"


@pytest.mark.parametrize("seed", [0, 1])
def test_problems_come_as_python_draws_them(ask, seed):
    steps = [0, 1, 499, 500]  # of 4000 problems, so that the second epoch begins
    *drawn, order = ask(
        {"ask": "problems", "count": 4000, "seed": seed, "split": "train"},
        {"ask": "problems", "count": 128, "seed": seed, "split": "evaluation"},
        {"ask": "order", "total": 4000, "count": 8, "steps": steps, "seed": seed},
    )
    for found, split in zip(drawn, ("train", "evaluation"), strict=True):
        own = word_problems.problems(len(found), seed, split=split)
        assert found == [{"question": p.question, "answer": p.answer} for p in own]
    assert order == [problems_of_step(range(4000), 8, step, seed) for step in steps]


def test_tokens_and_answers_are_read_alike(ask, policy):
    problems = word_problems.problems(300, seed=3)
    texts = [p.answer for p in problems] + ["Zebra 1 + 1 = 2\n#### 2", "", "é😀 ####"]
    written = [
        *("#### 1,234", "####14.50", "#### -3", "#### $ 7", "#### −0", "1 #### 2 #### 3", "#### x"),
        *("Answer: 3", "####", "#### .50", "#### 007", "#### 5.", "####\n8", *texts),
    ]
    encoded, prompts, decoded, answers = ask(
        {"ask": "encode", "texts": texts},
        {"ask": "prompt", "texts": [p.question for p in problems]},
        {"ask": "decode", "rows": [[1, 5, *range(7, 187), 2, 0]]},
        {"ask": "extract_answer", "texts": written},
    )
    assert encoded == [
        policy.tokenizer(text, add_special_tokens=False)["input_ids"] for text in texts
    ]
    assert prompts == [policy._prompt_ids(policy.format_prompt(p.question)) for p in problems]
    assert decoded == [policy.tokenizer.decode(list(range(7, 187)))]
    assert answers == [extract_answer(text) for text in written]


def test_logprobs_of_200_rows_are_torchs(ask, policy):
    """Read at once, and as the sampler wrote them with its cache."""
    problems = word_problems.problems(50, seed=5)
    prompts = [policy.format_prompt(p.question) for p in problems]
    generator = torch.Generator().manual_seed(0)
    drawn = policy.sample(prompts, 4, max_tokens=32, generator=generator)
    ids = [policy._prompt_ids(prompt) for prompt in prompts]
    tokens = [row[keep].tolist() for row, keep in zip(drawn.tokens, drawn.mask, strict=True)]
    read, greedy = ask(
        {"ask": "logprobs", "prompts": ids, "tokens": tokens, "group_size": 4},
        {"ask": "greedy", "prompts": ids, "group_size": 1},
    )
    with torch.no_grad():
        expected = policy.logprobs(drawn)
    found = tensor(read)[:, : expected.shape[1]]
    torch.testing.assert_close(found, expected.double(), atol=1e-4, rtol=0)
    assert len(expected) == 200
    own = policy.sample(prompts, 1, max_tokens=32, temperature=0)
    for n, (row, keep) in enumerate(zip(own.tokens, own.mask, strict=True)):
        assert greedy["tokens"][n] == row[keep].tolist()
        said = torch.tensor(greedy["old_logprobs"][n])
        torch.testing.assert_close(said, own.old_logprobs[n][keep], atol=1e-4, rtol=0)


def test_functions_and_gradients_agree_on_the_checks_own_cases(ask):
    """What a check asks of a student is asked of the page."""
    labels, expected, asks = [], [], []
    for name, by in MIRRORED.items():
        exercise = exercises.get(name)
        for case in exercise.draw_cases(0):
            given = dict(case.arguments)
            if given.pop("level", "token") != "token" or given.pop("estimator", "k3") != "k3":
                continue  # the page has these alone
            asks.append({"ask": "call", "name": name, "by": by, "given": dict(given)})
            labels.append(f"{name}, {case.label}")
            if by:
                given[by] = given[by].detach().clone().requires_grad_()
            value = exercise.reference(**given)
            gradient = torch.autograd.grad(value.sum(), given[by])[0] if by else None
            expected.append((value.detach(), gradient))
    assert {ask["name"] for ask in asks} == set(MIRRORED)
    for label, own, found in zip(labels, expected, ask(*asks), strict=True):
        for one, other in zip(own, (found["value"], found.get("gradient")), strict=True):
            if one is not None:
                close = torch.allclose(tensor(other), one.double(), atol=1e-4, rtol=1e-4)
                assert close, f"{label}: {tensor(other)} where the library says {one}"


def test_updates_are_torchs(ask):
    """AdamW with the recipe's settings, after the gradient was shortened to length 1."""
    generator = torch.Generator().manual_seed(0)
    start = torch.randn(3, 4, generator=generator)
    gradients = [scale * torch.randn(3, 4, generator=generator) for scale in (0.05, 2.0, 0.3, 9.0)]
    weight = torch.nn.Parameter(start.clone())
    recipe = load_recipe("grpo")
    optimizer = torch.optim.AdamW([weight], lr=0.01, betas=recipe.betas, weight_decay=0.0)
    for gradient in gradients:
        weight.grad = gradient.clone()
        torch.nn.utils.clip_grad_norm_([weight], recipe.max_grad_norm)
        optimizer.step()
    (found,) = ask({"ask": "adamw", "start": start, "gradients": gradients, "lr": 0.01})
    torch.testing.assert_close(tensor(found), weight.detach().double(), atol=1e-6, rtol=0)
