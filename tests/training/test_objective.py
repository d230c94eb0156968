"""Losses that ask for more than log-probs: entropies, a critic's values, settings of their own."""

import re
from functools import partial
from pathlib import Path

import pytest
import torch
from echo import by_length, echo_recipe, having

from rlcourse.errors import UserError
from rlcourse.training import add_method, load_recipe, train
from rlcourse.training.networks.forward import logprobs_and_entropy
from rlcourse.training.networks.micro_batches import MicroBatches
from rlcourse.training.online.objective import Objective
from rlcourse.training.recipes.methods import METHODS

PAGE = Path(__file__).parents[2] / "course" / "own_loss.md"


@pytest.fixture
def batch(policy):
    generator = torch.Generator().manual_seed(0)
    rollouts = policy.sample(["1?", "23?"], 4, max_tokens=8, generator=generator)
    return rollouts.__class__(**vars(rollouts) | {"advantages": torch.zeros(8)})


def gradient_of(policy):
    return torch.cat([p.grad.flatten() for p in policy.parameters()])


@pytest.mark.parametrize("size", [None, 3])
def test_the_entropy_bonus_follows_the_entropys_own_gradient_in_every_row(policy, batch, size):
    """Without an advantage it is all that is left of the loss."""
    policy = policy.double()
    objective = Objective(METHODS["grpo"], echo_recipe("grpo", entropy_bonus=0.5))
    assert not objective.skips_rows
    read = partial(objective.read, policy)
    made = MicroBatches(policy, size).backward(read, batch, partial(objective.loss, batch=batch))
    found = gradient_of(policy)
    policy.zero_grad()
    _, entropy = logprobs_and_entropy(policy, batch).unbind(1)
    expected = -0.5 * entropy[batch.mask].mean()
    expected.backward()
    torch.testing.assert_close(made.loss, expected.detach())
    torch.testing.assert_close(found, gradient_of(policy), rtol=1e-6, atol=1e-9)
    assert made.rows.all() and found.norm() > 1e-3


@pytest.mark.parametrize(
    ("algorithm", "changes"),
    [("grpo", {"micro_batch": 3}), ("ppo", {"gradient_checkpointing": True})],
)
def test_with_a_bonus_the_policy_stays_less_decided(algorithm, changes, policy, task):
    options = {"policy": policy, "task": task, "reward": by_length, "progress": False}
    settings = {"steps": 8, "lr": 1e-2, "eval_problems": 0, **changes}
    ends = [
        train(echo_recipe(algorithm, entropy_bonus=bonus, **settings), **options).metrics[-1]
        for bonus in (0.0, 1.0)
    ]
    assert ends[1]["entropy"] > ends[0]["entropy"]


def test_a_bonus_is_grpos_and_ppos():
    assert {name for name in METHODS if having(name, entropy_bonus=1)} == {"grpo", "ppo"}
    with pytest.raises(UserError, match="rloo has no setting entropy_bonus"):
        load_recipe("rloo", entropy_bonus=0.1)


def test_a_loss_may_name_what_a_critic_says(policy, task):
    shapes = []

    def ppo_clip_loss(logprobs, values, returns, advantages, mask):
        shapes.append((values.shape, returns.shape))
        return -(logprobs * advantages * mask).sum() / mask.sum()

    options = {"policy": policy, "task": task, "reward": by_length, "progress": False}
    train(echo_recipe("ppo", steps=1, eval_problems=0), loss=ppo_clip_loss, **options)
    assert shapes and all(one == other and len(one) == 2 for one, other in shapes)


def test_a_method_cannot_take_the_place_of_one_of_the_courses():
    with pytest.raises(UserError, match="grpo is one of the course's algorithms"):
        add_method("grpo", METHODS["rloo"])


@pytest.mark.slow
def test_the_page_on_a_loss_of_your_own_runs(monkeypatch, capsys, tmp_path):
    """Its code, from top to bottom, with fewer steps."""
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text("utf-8"), re.S)
    assert len(blocks) >= 3
    namespace = {}
    try:
        for code in blocks:
            exec(code.replace("steps=30", "steps=2"), namespace)
    finally:
        METHODS.pop("tempered", None)
    told = capsys.readouterr().out
    assert "sharpness" in told and "tempered · 2 steps" in told
    assert namespace["run"].recipe.sharpness == 0.5
