"""DAPO's batches: no groups without a signal, and a soft limit on length.

Source: Yu et al. 2025 (DAPO), sections 3.2 and 3.4.
"""

from collections.abc import Callable
from dataclasses import replace

import torch
from torch import Tensor

from rlcourse.policy.rollouts import Rollouts
from rlcourse.training.data.batches import joined
from rlcourse.training.functions.calling import call_for_tensor
from rlcourse.training.recipes.methods import Method
from rlcourse.training.recipes.settings import Recipe


def draw_enough(
    draw: Callable[[int], tuple[Rollouts, dict[str, Tensor]]], recipe: Recipe, method: Method
) -> tuple[Rollouts, dict[str, Tensor]]:
    """All rows of ``draw(0)``, ``draw(1)``, … until `prompts_per_step` groups have a signal.

    After ``recipe.resample`` more draws, it accepts what there is.
    """
    batches, parts, found = [], [], 0
    for attempt in range(1 + (recipe.resample or 0)):
        rollouts, rewards = draw(attempt)
        batches.append(rollouts)
        parts.append(rewards)
        found += int(informative(rollouts, recipe, method).sum())
        if found >= recipe.prompts_per_step:
            break
    return joined(batches), {name: torch.cat([part[name] for part in parts]) for name in parts[0]}


def with_signal(
    rollouts: Rollouts, recipe: Recipe, method: Method
) -> tuple[Rollouts, dict[str, float]]:
    """The first ``recipe.prompts_per_step`` groups with a signal.

    If no group has one, the first groups are returned as they are; their advantages are 0.
    """
    groups = informative(rollouts, recipe, method)
    chosen = groups.nonzero().squeeze(1) if groups.any() else torch.arange(len(groups))
    chosen = chosen[: recipe.prompts_per_step].to(rollouts.tokens.device)
    place = torch.arange(recipe.group_size, device=chosen.device)
    rollouts = rollouts.rows((chosen[:, None] * recipe.group_size + place).flatten())
    return rollouts, {"groups_drawn": len(groups)}


def with_overlong_penalty(
    rollouts: Rollouts, recipe: Recipe, method: Method
) -> tuple[Rollouts, dict[str, float]]:
    """The rollouts with ``overlong_penalty`` added to their rewards, where it is asked for."""
    if not (method.uses("overlong_penalty") and recipe.overlong_buffer):
        return rollouts, {}
    penalty = call_for_tensor(
        method.function("overlong_penalty"),
        (len(rollouts),),
        lengths=rollouts.mask.sum(1),
        max_tokens=recipe.max_tokens,
        buffer=recipe.overlong_buffer,
    )
    assert rollouts.rewards is not None
    rollouts = replace(rollouts, rewards=rollouts.rewards + penalty)
    return rollouts, {"rewards/overlong/mean": penalty.mean().item()}


def informative(rollouts: Rollouts, recipe: Recipe, method: Method) -> Tensor:
    """Which groups have a signal, (groups,) bool, as ``informative_groups`` says."""
    size = recipe.group_size
    groups_of, shape = method.function("informative_groups"), (len(rollouts) // size,)
    return call_for_tensor(groups_of, shape, rewards=rollouts.rewards, group_size=size).bool()
