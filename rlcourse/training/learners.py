"""What a run trains: a policy, or a reward model; with its optimizer and its steps."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import torch
from torch import nn

from rlcourse.evaluation import Interval
from rlcourse.tasks.problem import Task
from rlcourse.training.descent import adamw
from rlcourse.training.loop import training_steps
from rlcourse.training.methods import Method
from rlcourse.training.preferences import (
    dpo_pairs_loss,
    held_out_pairs,
    pair_accuracy,
    preference_steps,
    reward_pairs_loss,
    training_pairs,
)
from rlcourse.training.recipe import Recipe
from rlcourse.training.scalar_model import RewardModel, scalar_model


@dataclass(frozen=True)
class Learner:
    """What a run trains, and the steps that do it."""

    module: nn.Module  # all weights that change: what a checkpoint holds
    optimizer: torch.optim.Optimizer
    steps: Callable[[int], Iterator[dict]]  # the metrics of each step, from that one on
    reward_model: RewardModel | None = None  # where it is that which is trained
    pair_accuracy: Callable[[], Interval | None] | None = None  # its accuracy on held-out pairs


def learner_for(
    policy,
    recipe: Recipe,
    task: Task,
    method: Method,
    reward: Callable | None = None,
    out: Path | None = None,
    progress: bool = False,
) -> Learner:
    """The learner of ``recipe.algorithm``, which starts from `policy`.

    To be called before a checkpoint is loaded: references, pairs and heads come from the start.
    """
    if not method.compares:
        reference = policy.clone(frozen=True) if recipe.beta > 0 else None
        critic = scalar_model(policy) if method.critic else None
        optimizer = adamw(recipe, policy, critic)
        steps = partial(
            *(training_steps, policy, reference, optimizer, recipe, task, method, reward),
            critic=critic,
        )
        both = nn.ModuleDict({"policy": policy, "critic": critic}) if critic else policy
        return Learner(both, optimizer, steps)
    pairs = training_pairs(policy, recipe, task, method, reward, out, progress)
    if recipe.algorithm == "dpo":
        module, extras = policy, {}
        reference = policy.clone(frozen=True)
        loss_of = partial(
            dpo_pairs_loss, policy=policy, reference=reference, recipe=recipe, method=method
        )
    else:
        model = RewardModel.from_policy(policy, method.functions["last_token_index"])
        held_out = held_out_pairs(policy, recipe, task, method, reward)
        accuracy = partial(pair_accuracy, model, held_out, recipe, method)
        module, extras = model.reader, {"reward_model": model, "pair_accuracy": accuracy}
        loss_of = partial(reward_pairs_loss, model=model, recipe=recipe, method=method)
    optimizer = adamw(recipe, module)
    steps = partial(preference_steps, loss_of, pairs, policy.device, optimizer, recipe)
    return Learner(module, optimizer, steps, **extras)
