"""Episodes by TRL: those of the local engine, with its weights."""

import pytest
import torch

from rlcourse.errors import UserError
from rlcourse.policy import Policy
from rlcourse.tasks import CalculatorEnvironment
from rlcourse.training import load_recipe
from rlcourse.training import train as train_locally

trl = pytest.importorskip("trl", reason="the extra `trl` is not installed")

from rlcourse import trl_engine  # noqa: E402


@pytest.fixture(scope="module")
def shown(tmp_path_factory):
    """A policy that calls now and then: without any call, no episode has an observation."""
    recipe = load_recipe("calculator_sft", steps=12, eval_problems=0, device="cpu")
    place = tmp_path_factory.mktemp("shown") / "policy"
    train_locally(recipe, progress=False).policy.save(place)
    return place


def small(shown, **changes):
    settings = {"policy": str(shown), "warm_start": None, "steps": 2, "prompts_per_step": 2}
    settings |= {"group_size": 4, "eval_problems": 0, "checkpoint_every": 0, "device": "cpu"}
    return load_recipe("calculator_grpo", **(settings | changes))


def apart(one, other, start) -> float:
    """How far two policies are from each other, next to how far they are from `start`."""
    policies = (one, other, Policy.load(start, device="cpu"))
    a, b, c = (torch.cat([p.detach().flatten() for p in each.parameters()]) for each in policies)
    return ((a - b).norm() / (a - c).norm()).item()


def test_both_engines_play_the_same_episodes_and_learn_the_same(shown, tmp_path, monkeypatch):
    """Rewards of the two engines are equal by a rule that a beginner is paid by, too."""
    respond = CalculatorEnvironment.respond

    def by_length(self, text):
        reply = respond(self, text)
        return reply._replace(reward=len(text) % 3 / 2)

    monkeypatch.setattr(CalculatorEnvironment, "respond", by_length)
    recipe = small(shown)
    ours = train_locally(recipe, tmp_path / "local", progress=False)
    theirs = trl_engine.train(recipe, tmp_path / "trl", progress=False)
    assert apart(ours.policy, theirs.policy, shown) < 0.005  # 4e-4, of gradients that are rounding
    for mine, other in zip(ours.metrics, theirs.metrics, strict=True):
        assert mine["grad_norm"] > 0 and mine["turns"] > 1
        for name in ("reward/mean", "grad_norm", "tokens", "lr"):
            assert mine[name] == pytest.approx(other[name], rel=2e-3), name


def test_demonstrated_episodes_are_the_same_to_both_engines(shown, tmp_path):
    settings = {"policy": str(shown), "steps": 2, "prompts_per_step": 4, "eval_problems": 0}
    recipe = load_recipe("calculator_sft", device="cpu", **settings)
    ours = train_locally(recipe, tmp_path / "local", progress=False)
    theirs = trl_engine.train(recipe, tmp_path / "trl", progress=False)
    assert apart(ours.policy, theirs.policy, shown) < 0.005
    assert ours.metrics[0]["tokens"] == theirs.metrics[0]["tokens"]


@pytest.mark.parametrize(
    ("changes", "settings", "sentence"),
    [
        ({"algorithm": "rloo"}, (), "TRL's rloo plays no episodes"),
        ({}, ("use_vllm=true",), "leave out use_vllm"),
    ],
)
def test_what_plays_no_episodes_is_refused(shown, tmp_path, changes, settings, sentence):
    with pytest.raises(UserError, match=sentence):
        trl_engine.train(
            small(shown, **changes), tmp_path / "run", settings=settings, progress=False
        )
    assert not (tmp_path / "run" / "policy").exists()
