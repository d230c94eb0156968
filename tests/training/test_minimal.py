"""The page that shows GRPO from top to bottom trains what the trainer trains."""

import inspect

import pytest
import torch

from rlcourse.policy import Policy
from rlcourse.tasks import load_task
from rlcourse.training import load_recipe, minimal, train


@pytest.fixture(scope="module")
def places():
    """The embedded model and its task, in float64: two ways to one sum then agree to many digits.

    Not to all: the model's norms are computed in float32 whatever its weights are.
    """
    policy = Policy.load("tiny", "cpu")
    policy.model.double()
    return policy, load_task("word_problems", seed=0)


def apart(policy: Policy, other: Policy, start: Policy) -> float:
    """How far two policies are from each other, as a share of how far they have come."""
    weights = [
        torch.cat([p.detach().flatten() for p in q.parameters()]) for q in (policy, other, start)
    ]
    moved = (weights[0] - weights[2]).norm()
    assert moved > 0
    return float((weights[0] - weights[1]).norm() / moved)


def test_imitation_gives_the_weights_of_rlcourse_train_sft(places):
    start, task = places
    recipe = load_recipe("sft", steps=3, prompts_per_step=8, eval_problems=0, device="cpu")
    theirs = train(recipe, policy=start, task=task, progress=False).policy
    ours = start.clone()
    minimal.imitate(ours, task, steps=3, rows=8)
    assert apart(theirs, ours, start) < SAME


# Shares of the way, over six runs: at most 2e-4 apart, and with a KL penalty of 0.5 at least 0.13.
SAME, DIFFERENT = 1e-2, 5e-2


@pytest.mark.slow
@pytest.mark.parametrize("settings", [{}, {"beta": 0.1, "num_iterations": 2, "clip": 0.01}])
def test_it_gives_the_weights_of_rlcourse_train_grpo(places, settings):
    start, task = places
    start = start.clone()
    minimal.imitate(start, task, steps=20, rows=32)  # some groups are right and wrong then
    settings = {"steps": 3, "prompts_per_step": 6, "group_size": 4, "max_tokens": 40, **settings}
    recipe = load_recipe("grpo", warm_start=None, eval_problems=0, device="cpu", **settings)
    run = train(recipe, policy=start, task=task, progress=False)
    ours = start.clone()
    rewards = list(minimal.train_grpo(ours, task, **settings))
    assert rewards == pytest.approx([m["reward/mean"] for m in run.metrics], abs=1e-5)
    assert 0 < sum(rewards) < len(rewards), "nothing to learn: the test would prove nothing"
    assert apart(run.policy, ours, start) < SAME
    other = start.clone()
    list(minimal.train_grpo(other, task, **settings | {"beta": 0.5}))
    assert apart(run.policy, other, start) > DIFFERENT


def test_it_is_one_page_and_uses_nothing_of_the_trainer():
    source = inspect.getsource(minimal)
    assert source.count("\n") <= 120
    assert "rlcourse.training" not in source.split('"""', 2)[2]
