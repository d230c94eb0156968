"""What a run trains: a policy, or a reward model; with its optimizer and its steps."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import torch
from torch import nn

from rlcourse.evaluation import Interval
from rlcourse.policy.lora import WithoutAdapters, has_adapters
from rlcourse.tasks.problem import Task
from rlcourse.training.faults import install
from rlcourse.training.faulty import Parts
from rlcourse.training.gradient_checkpointing import enable_gradient_checkpointing
from rlcourse.training.loop import training_steps
from rlcourse.training.methods import Method
from rlcourse.training.micro_batches import MicroBatches
from rlcourse.training.optimizer import adamw
from rlcourse.training.pipeline import Carried
from rlcourse.training.preferences import (
    held_out_pairs,
    learn_dpo,
    learn_rewards,
    pair_accuracy,
    preference_steps,
    training_pairs,
)
from rlcourse.training.recipe import Recipe
from rlcourse.training.value_head import RewardModel, value_head


@dataclass(frozen=True)
class Learner:
    """What a run trains, and the steps that do it."""

    module: nn.Module  # all weights that change: what a checkpoint holds
    optimizer: torch.optim.Optimizer
    steps: Callable[[int], Iterator[dict]]  # the metrics of each step, from that one on
    reward_model: RewardModel | None = None  # where it is that which is trained
    pair_accuracy: Callable[[], Interval | None] | None = None  # its accuracy on held-out pairs
    carried: Carried | None = None  # what else must be in a checkpoint


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
    if not method.compares_pairs:
        reference = reference_for(policy, recipe) if recipe.beta > 0 else None
        critic = value_head(policy) if method.critic else None
        if critic and recipe.gradient_checkpointing:
            enable_gradient_checkpointing(critic)
        optimizer = adamw(recipe, policy, critic)
        parts = install(recipe.fault, Parts(policy, policy, method, reward, optimizer))
        settings = (parts.policy, reference, optimizer, recipe, task, parts.method, parts.reward)
        carried = Carried.of(recipe, reference)
        others = {"critic": critic, "carried": carried, "sampler": parts.sampler}
        steps = partial(training_steps, *settings, **others)
        both = nn.ModuleDict({"policy": policy, "critic": critic}) if critic else policy
        return Learner(both, optimizer, steps, carried=carried)
    pairs = training_pairs(policy, recipe, task, method, reward, out, progress)
    if method.trains_policy:
        module, model, accuracy = policy, None, None
        learning = MicroBatches(policy, recipe.micro_batch)
        reference = reference_for(policy, recipe)
        learn = partial(
            learn_dpo, learning=learning, reference=reference, recipe=recipe, method=method
        )
    else:
        model = RewardModel.from_policy(policy, method.function("last_token_index"))
        module = model.reader
        if recipe.gradient_checkpointing:
            enable_gradient_checkpointing(module.model)
        held_out = held_out_pairs(policy, recipe, task, method, reward)
        accuracy = partial(pair_accuracy, model, held_out, recipe, method)
        learning = MicroBatches(module, recipe.micro_batch)
        learn = partial(learn_rewards, model=model, learning=learning, recipe=recipe, method=method)
    optimizer = adamw(recipe, module)
    steps = partial(preference_steps, learn, pairs, policy.device, optimizer, recipe)
    return Learner(module, optimizer, steps, model, accuracy)


def reference_for(policy, recipe: Recipe):
    """The policy as it is now, frozen: a copy, or where it has adapters, itself without them."""
    if has_adapters(policy.model):
        return WithoutAdapters(policy)
    reference = policy.clone(frozen=True)
    if recipe.dtype == "bfloat16":
        _round_matrices(reference.model)
    return reference


def _round_matrices(model: nn.Module) -> None:
    """Keep in bfloat16 what autocast would round to it at every use, and nothing else.

    The frozen copy then takes half the memory and gives exactly what the policy that it was taken
    from gives: a KL penalty is 0 at the start, and not rounding noise to train on.
    """
    looked_up = {id(m.weight) for m in model.modules() if isinstance(m, nn.Embedding)}
    for module in model.modules():
        if isinstance(module, nn.Linear) and id(module.weight) not in looked_up:
            for parameter in module.parameters():
                parameter.data = parameter.data.bfloat16()
