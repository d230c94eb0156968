"""What a run trains: a policy, or a reward model; with its optimizer and its steps."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from rlcourse.evaluation import Interval
from rlcourse.policy.lora import WithoutAdapters
from rlcourse.training.networks.value_head import RewardModel
from rlcourse.training.recipes.settings import Recipe


@dataclass(frozen=True)
class Learner:
    """What a run trains, and the steps that do it."""

    module: nn.Module  # all weights that change: what a checkpoint holds
    optimizer: torch.optim.Optimizer
    steps: Callable[[int], Iterator[dict]]  # the metrics of each step, from that one on
    reward_model: RewardModel | None = None  # where it is that which is trained
    pair_accuracy: Callable[[], Interval | None] | None = None  # its accuracy on held-out pairs
    carried: Any = None  # what else must be in a checkpoint


def reference_for(policy, recipe: Recipe):
    """The policy as it is now, frozen: a copy, or with new adapters itself without them."""
    if recipe.lora:
        return WithoutAdapters(policy)
    reference = policy.clone(frozen=True)
    if recipe.dtype != "float32":
        _round_matrices(reference.model, getattr(torch, recipe.dtype))
    return reference


def _round_matrices(model: nn.Module, dtype: torch.dtype) -> None:
    """Keep in `dtype` what autocast would round at every use, and nothing else.

    The frozen copy then takes half the memory and gives exactly what the policy that it was taken
    from gives: a KL penalty is 0 at the start, and not rounding noise to train on.
    """
    looked_up = {id(m.weight) for m in model.modules() if isinstance(m, nn.Embedding)}
    for module in model.modules():
        if isinstance(module, nn.Linear) and id(module.weight) not in looked_up:
            for parameter in module.parameters():
                parameter.data = parameter.data.to(dtype)
