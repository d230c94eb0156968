"""What a run of batches trains: a policy, with a critic where the method has one."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import nn

from rlcourse.tasks.problem import Task
from rlcourse.training.learner import Learner, reference_for
from rlcourse.training.measuring.keeping import KeptGroups
from rlcourse.training.networks.gradient_checkpointing import enable_gradient_checkpointing
from rlcourse.training.networks.optimizer import adamw
from rlcourse.training.networks.value_head import value_head
from rlcourse.training.online.loop import training_steps
from rlcourse.training.online.pipeline import Carried
from rlcourse.training.recipes.methods import Method
from rlcourse.training.recipes.settings import Recipe


@dataclass(frozen=True)
class Parts:
    """What a training loop is put together from."""

    policy: Any  # scores completions, and is trained
    sampler: Any  # draws them
    method: Method
    reward: Callable | None
    optimizer: torch.optim.Optimizer


def learner(
    policy,
    recipe: Recipe,
    task: Task,
    method: Method,
    reward: Callable | None = None,
    out: Path | None = None,
    change: Callable[[Parts], Parts] = lambda parts: parts,
    teacher=None,
) -> Learner:
    """The learner of a method that learns from batches; `change` may exchange some of its parts,
    and `teacher` is the policy that a method with a teacher learns from."""
    reference = reference_for(policy, recipe) if recipe.beta > 0 else None
    critic = value_head(policy) if method.critic else None
    if critic and recipe.gradient_checkpointing:
        enable_gradient_checkpointing(critic)
    optimizer = adamw(recipe, policy, critic)
    parts = change(Parts(policy, policy, method, reward, optimizer))
    settings = (parts.policy, reference, optimizer, recipe, task, parts.method, parts.reward)
    carried = Carried.of(recipe, reference, policy.device)
    others = {"critic": critic, "carried": carried, "sampler": parts.sampler, "teacher": teacher}
    kept = out if not method.imitates else None
    keep = KeptGroups(kept, recipe.steps, policy.tokenizer) if kept else None
    steps = partial(training_steps, *settings, **others, keep=keep)
    both = nn.ModuleDict({"policy": policy, "critic": critic}) if critic else policy
    return Learner(both, optimizer, steps, carried=carried)
