"""The numbers of the lessons' interactive figures are the library's. They are asked in Node.js."""

import json
import random
import re
import shutil
import subprocess
import sys
from itertools import product
from pathlib import Path

import pytest
import torch
from torch import Tensor

from rlcourse import algorithms
from rlcourse.errors import UserError

sys.path.insert(0, str(Path(__file__).parents[3] / "course/site"))
from figures import build

HERE = Path(__file__).parent
MODULES = Path(__file__).parents[3] / "course/site/figures"
FIGURES = ("bandit", "baseline", "weights", "clip", "group", "dpo")


@pytest.fixture(scope="module")
def ask():
    """ask([{"module": …, "name": …, "args": […]}, …]) → what the modules answer, in this order."""
    if shutil.which("node") is None:
        pytest.skip("needs Node.js")

    def answers(asks: list[dict]) -> list:
        command = ["node", HERE / "answer.mjs", MODULES]
        done = subprocess.run(command, input=json.dumps(asks), capture_output=True, text=True)
        assert done.returncode == 0, done.stderr[-2000:]
        return json.loads(done.stdout)

    return answers


@pytest.fixture(scope="module")
def calls(ask):
    """calls(module, name, [args, …]) → one answer for each."""
    return lambda module, name, every: ask(
        [{"module": module, "name": name, "args": args} for args in every]
    )


def double(values) -> Tensor:
    return torch.tensor(values, dtype=torch.float64)


def same(found, expected) -> None:
    torch.testing.assert_close(double(found), expected.double(), rtol=1e-6, atol=1e-9)


def test_the_bandits_gradient_and_its_path(calls):
    draw = random.Random(0)
    every = [[[draw.gauss(0, 2) for _ in "abc"] for _ in range(2)] for _ in range(100)]
    for (logits, rewards), found in zip(
        every, calls("bandit", "exact_policy_gradient", every), strict=True
    ):
        same(found, algorithms.exact_policy_gradient(double(logits), double(rewards)))
    (path,) = calls("bandit", "path", [[*every[0], 40]])
    logits, rewards = map(double, every[0])
    for point in path:
        same(point, logits)
        logits = logits + algorithms.exact_policy_gradient(logits, rewards)


@pytest.mark.slow
@pytest.mark.parametrize("samples", [10, 16, 50, 140])
def test_the_variance_under_a_baseline_is_that_of_samples_in_exact_proportion(calls, samples):
    """Of so many samples, 5 are A, 2 are C and the others B: their variance is the expectation."""
    answers = [0] * 5 + [1] * (samples - 7) + [2] * 2
    for added, b in product((0.0, 0.3, 1.0), (-0.5, 0.0, 0.37, 2.0)):
        state = {"right": (samples - 7) / samples, "added": added, "b": b}
        (found,) = calls("baseline", "numbers", [[state]])
        logits = double([5, samples - 7, 2]).log()
        rewards = double([0, 1, 0]) + added
        scores = torch.stack([algorithms.score_function(logits, a) for a in range(3)])
        gradients = (rewards - b)[:, None] * scores
        same(found["gradients"], gradients)
        of_samples = algorithms.gradient_variance(gradients[answers])
        same(found["variance"], of_samples * (samples - 1) / samples)
        same(found["exact"], algorithms.exact_policy_gradient(logits, rewards))
        lengths = scores.square().sum(1)
        same(found["best"], algorithms.optimal_baseline(rewards[answers], lengths[answers]))
        same(found["mean"], rewards[answers].mean())


def test_the_effective_size_of_completions(calls):
    for sigma, length in ((0.0, 5), (0.1, 1), (0.3, 16), (0.3, 128), (0.5, 128)):
        (ratios,) = calls("weights", "log_ratios", [[sigma, length]])
        logprobs = double(ratios)
        assert logprobs.shape == (200, length)
        mask = torch.ones_like(logprobs, dtype=torch.bool)
        weights = algorithms.importance_weights(logprobs, 0 * logprobs, mask, "sequence")
        (found,) = calls("weights", "importance_weights", [[ratios]])
        same(found, weights)
        (size,) = calls("weights", "effective_sample_size", [[found]])
        same(size, algorithms.effective_sample_size(weights))


def test_the_clip_its_value_its_gradient_and_what_it_stops(calls):
    draw = random.Random(1)
    every = [
        [draw.uniform(0.05, 3), draw.choice([0.0, draw.gauss(0, 1)]), draw.uniform(0.01, 0.6)]
        for _ in range(300)
    ]
    found = {name: calls("clip", name, every) for name in ("objective", "gradient", "stopped")}
    for i, (ratio, advantage, clip) in enumerate(every):
        logprobs = double([[ratio]]).log().requires_grad_()
        given = (logprobs, double([[0.0]]), double([advantage]), torch.ones(1, 1), clip)
        loss, fraction = algorithms.ppo_clip_loss(*given)
        (gradient,) = torch.autograd.grad(-loss, logprobs)
        same(found["objective"][i], -loss.detach())
        same(found["gradient"][i], gradient[0, 0])
        assert found["stopped"][i] == bool(fraction)


def test_the_advantages_of_every_group_of_eight(calls):
    groups = [list(rewards) for rewards in product((0.0, 1.0), repeat=8)]
    for name in ("group_mean_advantages", "group_normalized_advantages"):
        expected = getattr(algorithms, name)(double(groups).flatten(), 8).reshape(-1, 8)
        same(calls("group", name, [[group] for group in groups]), expected)


def test_a_pair_of_dpo(calls):
    draw = random.Random(2)
    numbers = [
        [draw.uniform(-20, 10), draw.uniform(-20, 10), draw.uniform(0.02, 1), draw.choice([0, 0.2])]
        for _ in range(200)
    ]
    numbers += [[10, -900, 1.0, 0.0], [-900, 10, 1.0, 0.1], [3, 3, 0.1, 0.0]]
    for (chosen, rejected, beta, smoothing), found in zip(
        numbers, calls("dpo", "dpo", numbers), strict=True
    ):
        logprobs = double([chosen]).requires_grad_()
        others = (double([rejected]), double([0.0]), double([0.0]))
        loss, better, worse = algorithms.dpo_loss(logprobs, *others, beta, smoothing)
        (gradient,) = torch.autograd.grad(loss, logprobs)
        same(found["loss"], loss.detach())
        same(found["margin"], (better - worse)[0])
        same(found["push"], -gradient[0])
        same(found["weight"] * beta, -gradient[0])


@pytest.mark.parametrize("name", FIGURES)
def test_no_position_of_the_controls_breaks_a_figure(ask, name):
    """At the ends of all sliders and at random places, numbers are numbers in texts and charts."""
    (about,) = ask([{"module": name, "about": True}])
    draw, sliders = random.Random(3), about["sliders"]
    states = [{}] + [{s["name"]: s[end] for s in sliders} for end in ("min", "max")]
    states += [{s["name"]: draw.uniform(s["min"], s["max"]) for s in sliders} for _ in range(40)]
    for slider in sliders:
        assert slider["min"] <= about["state"][slider["name"]] <= slider["max"]
    for state in states:
        if "steps" in state:
            state["steps"] = round(state["steps"])
        if "T" in state:
            state["T"] = round(state["T"])
    (views,) = ask([{"module": name, "views": states}])
    for state, view in zip(states, views, strict=True):
        text = view["says"] + view["below"] + "".join(view["charts"])
        assert not re.search("NaN|undefined|null|Infinity|\\[object", text), (state, view["says"])
        assert all('role="img" aria-label="' in chart for chart in view["charts"])


def test_every_figure_stands_in_a_lesson_and_every_mark_has_its_figure():
    lessons = (MODULES.parents[1] / "lessons").glob("*/lesson.md")
    texts = [path.read_text("utf-8") for path in lessons]
    named = [name for text in texts for name in re.findall(r"<!-- figure: (\w+) -->$", text, re.M)]
    assert sorted(named) == sorted(FIGURES)


def test_figures_ask_for_nothing_from_elsewhere():
    for path in [*MODULES.glob("*.js"), *MODULES.glob("*.css")]:
        text = path.read_text("utf-8")
        assert not re.search(r"https?:|fetch\(|XMLHttpRequest|@import|url\((?!#)", text), path
        assert all(name.startswith("./") for name in re.findall(r'from "(.*?)"', text)), path


def test_a_mark_is_taken_out_with_its_line_and_an_unknown_figure_is_refused():
    text = "What is drawn.\n\n*On the website, it moves.* <!-- figure: dpo -->\n\nThe rest."
    assert build.taken_out(text) == ("What is drawn.\n\nThe rest.", "dpo")
    assert build.taken_out("No figure.") == ("No figure.", None)
    with pytest.raises(UserError, match="there is no figure 'pdo': choose one of"):
        build.taken_out(text.replace("dpo", "pdo"))
