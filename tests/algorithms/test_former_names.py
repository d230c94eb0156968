"""Names of earlier versions get a message with today's name, wherever they are used."""

import pytest
import torch

from rlcourse.errors import UserError
from rlcourse.training import load_recipe, train


def test_an_old_function_is_answered_where_it_is_imported():
    with pytest.raises(ImportError, match="sequence_level_loss is called gspo_loss now"):
        from rlcourse.algorithms import sequence_level_loss  # noqa: F401


def test_an_old_parameter_is_answered_by_the_trainer(policy, task, recipe):
    def loss(logprobs, rewards, mask):
        return -(rewards * logprobs.sum(1)).mean()

    with pytest.raises(UserError, match="it is called 'advantages' now"):
        train(recipe(eval_problems=0), policy=policy, task=task, loss=loss, progress=False)

    def step(policy, optimizer, rollouts, updates):
        return torch.zeros(())

    with pytest.raises(UserError, match="it is called 'num_iterations' now"):
        train(recipe(eval_problems=0), policy=policy, task=task, step=step, progress=False)


@pytest.mark.parametrize(("was", "now"), [("prompts", "prompts_per_step"), ("updates", "num_")])
def test_an_old_recipe_key_is_answered(was, now):
    with pytest.raises(UserError, match=f"has no key '{was}': it is called '{now}"):
        load_recipe("grpo", **{was: 4})
