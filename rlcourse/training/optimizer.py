"""One optimizer step, and what guards it: learning rate, precision, gradient length, NaN."""

import math
from collections.abc import Iterable

import torch
from torch import Tensor, nn

from rlcourse.errors import UserError
from rlcourse.training.recipe import Recipe


class NonFinite(UserError):
    """The loss or its gradient is not a finite number; the weights were not touched."""


def adamw(recipe: Recipe, network: nn.Module, critic: nn.Module | None = None):
    """AdamW over what is trained: the network, and the critic at a learning rate of its own."""
    groups = [{"params": _trained(network), "scale": 1.0}]
    if critic is not None:
        groups.append({"params": _trained(critic), "scale": recipe.critic_lr / recipe.lr})
    return torch.optim.AdamW(
        groups, lr=recipe.lr, betas=recipe.betas, weight_decay=recipe.weight_decay, fused=True
    )


def _trained(network: nn.Module) -> list[nn.Parameter]:
    return [p for p in network.parameters() if p.requires_grad]


def learning_rate(recipe: Recipe, step: int) -> float:
    """The learning rate of a step: `warmup` steps of ramp, then the schedule.

    It depends on the step alone, so a resumed run needs no scheduler's state.
    """
    lr = recipe.lr * min(1.0, (step + 1) / (recipe.warmup + 1))
    if recipe.schedule == "linear":
        lr *= 1 - max(0, step - recipe.warmup) / max(1, recipe.steps - recipe.warmup)
    return lr


def set_learning_rate(optimizer: torch.optim.Optimizer, recipe: Recipe, step: int) -> float:
    """Put this step's learning rate into the optimizer, and return it."""
    lr = learning_rate(recipe, step)
    for group in optimizer.param_groups:
        group["lr"] = lr * group.get("scale", 1.0)
    return lr


def optimizer_step(
    losses: Iterable[Tensor], optimizer: torch.optim.Optimizer, recipe: Recipe, step: int
) -> Tensor:
    """One step down the gradient that `losses` left; its length before it was shortened.

    Each network (parameter group) is shortened on its own; the length returned is the first's.
    Raises ``NonFinite``, before a weight is changed, where loss or gradient is NaN or infinite.
    """
    require_finite(losses, "loss", step, recipe)
    lengths = [
        nn.utils.clip_grad_norm_(group["params"], recipe.max_grad_norm)
        for group in optimizer.param_groups
    ]
    require_finite(lengths, "gradient's length", step, recipe)
    optimizer.step()
    optimizer.zero_grad()  # while rollouts are sampled their memory is wanted
    return lengths[0]


def require_finite(values: Iterable[Tensor], what: str, step: int, recipe: Recipe) -> None:
    """Raise ``NonFinite`` if one of the scalars is NaN or infinite."""
    for value in values:
        if not math.isfinite(value.item()):
            raise NonFinite(
                f"the {what} is {value.item()} at step {step + 1}: lower lr (now {recipe.lr:g}) "
                f"or max_grad_norm (now {recipe.max_grad_norm:g})"
            )


def autocast(device: torch.device, dtype: str, keep_rounded: bool = True) -> torch.autocast:
    """The precision in which something is computed. Weights and optimizer stay in float32.

    Within one such context the rounded weights are computed once and kept. Let it end before an
    optimizer step, or do without: where weights change inside of it, and where memory is short.
    """
    return torch.autocast(
        torch.device(device).type,
        torch.bfloat16,
        enabled=dtype == "bfloat16",
        cache_enabled=keep_rounded,
    )
