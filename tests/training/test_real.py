"""The last section of a lesson: what it shows without the real model, and what it does with it."""

import json
import os
from pathlib import Path

import pytest
import torch

from rlcourse.errors import UserError
from rlcourse.policy import Policy, real_model
from rlcourse.training import evaluate_policy, load_recipe, real, train

NAMES = sorted({p.stem for p in real.RECORDS.glob("*.json")} - {"boxes"})  # which is only read
METHODS = ("sft", "reinforce", "rloo", "grpo", "dr_grpo", "dapo", "gspo", "cispo", "ppo", "dpo")
METHODS += ("rejection_sampling",)


def forbidden(*args, **options):
    raise AssertionError("a record is shown, so nothing is loaded or measured")


@pytest.fixture
def here(monkeypatch, tmp_path):
    """A directory of its own, on a machine without a GPU where nothing was asked for."""
    monkeypatch.delenv(real.VARIABLE, raising=False)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def small(here, monkeypatch):
    """The directory of a model, which is the embedded one, and imitation of a single step."""
    Policy.load("tiny").save(here / "model")
    monkeypatch.setenv(real.VARIABLE, str(here / "model"))
    short = {"steps": 1, "prompts_per_step": 2}
    monkeypatch.setattr(real, "load_recipe", lambda *a, **kw: load_recipe(*a, **kw).but(**short))
    return here


@pytest.mark.parametrize("name", NAMES)
def test_without_a_gpu_the_record_is_shown_and_its_first_line_says_so(
    here, monkeypatch, capsys, name
):
    monkeypatch.setattr(Policy, "load", forbidden)
    assert real.measured(name, forbidden)
    first = capsys.readouterr().out.splitlines()[0]
    assert first.startswith("Recorded on 20") and "core" in first and "`rlcourse " in first
    assert not list(here.iterdir())


def test_with_a_gpu_a_record_is_shown_all_the_same_where_the_variable_says_so(here, monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setenv(real.VARIABLE, "recorded")
    assert real.measured(NAMES[0], forbidden)


def test_a_measurement_starts_from_imitation_and_is_kept(small, capsys):
    measured = real.measured(
        "some", lambda policy: {"weights": sum(map(torch.numel, policy.parameters()))}
    )
    assert "Measured here now" in capsys.readouterr().out
    assert (small / "model-imitated" / "config.json").is_file()
    assert json.loads(Path("real/some.json").read_text("utf-8"))["found"] == measured
    assert real.measured("some", forbidden) == measured


def test_a_directory_without_a_model_is_refused_with_the_command(here, monkeypatch):
    monkeypatch.setenv(real.VARIABLE, str(here / "nothing"))
    with pytest.raises(UserError, match="rlcourse model smollm2-135m"):
        real.measured("some", forbidden)


def test_grpo_is_resumed_and_takes_the_students_functions(small):
    asked = []

    def advantages(rewards, group_size):
        asked.append(group_size)
        return torch.randn(len(rewards))

    policy = real.imitated(small / "model")
    run = real.learned(policy, advantages=advantages)
    again = real.learned(policy, advantages=forbidden)
    assert asked == [8] and len(run.metrics) == 1
    for a, b in zip(run.policy.parameters(), again.policy.parameters(), strict=True):
        assert torch.equal(a, b)


@pytest.fixture(scope="module")
def weights(tmp_path_factory):
    """The real model, fetched to where the variable says unless it is there."""
    directory = Path(os.environ.get(real.VARIABLE, tmp_path_factory.mktemp("real") / "model"))
    if not (directory / "config.json").is_file():
        try:
            real_model.fetch(directory)
        except UserError as error:
            pytest.skip(f"needs the real weights: {error}")
    return Policy.load(directory, device="cpu")


@pytest.mark.weekly
@pytest.mark.parametrize("name", METHODS)
def test_a_step_of_each_method_moves_the_real_weights(weights, tmp_path, name):
    settings = {"steps": 1, "prompts_per_step": 2, "max_tokens": 8, "eval_problems": 0}
    settings |= {"dpo": {"questions": 2}, "dapo": {"overlong_buffer": 4}}.get(name, {})
    how = {} if name == "sft" else {"reward": lambda completions: alternating(len(completions))}
    recipe = load_recipe(name, **settings)
    run = train(recipe, policy=weights, out=tmp_path / "run", progress=False, **how)
    assert torch.isfinite(torch.tensor(run.metrics[0]["loss"]))
    pairs = zip(weights.parameters(), run.policy.parameters(), strict=True)
    assert not all(torch.equal(a, b) for a, b in pairs)


def alternating(n):
    """Rewards 0 and 1 by turns, so that every group is mixed: (n,)."""
    return (torch.arange(n) % 2).float()


@pytest.mark.weekly
def test_the_real_weights_are_evaluated(weights):
    from rlcourse.tasks import load_task

    found = evaluate_policy(
        weights, load_task("word_problems").evaluation[:4], samples=1, max_tokens=8
    )
    assert found.problems == 4 and 0 <= found.accuracy.value <= 1
