"""One optimizer step, and what guards it: learning rate, precision, gradient length, NaN."""

import logging
import math
from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor, nn

from rlcourse.errors import UserError
from rlcourse.installed import needing, require
from rlcourse.training.recipes.settings import Recipe


class NonFinite(UserError):
    """The loss or its gradient is not finite; the weights were not changed."""


def adamw(recipe: Recipe, network: nn.Module, critic: nn.Module | None = None):
    """AdamW over what is trained: the network, and the critic at a learning rate of its own."""
    groups = [{"params": _trained(network), "scale": 1.0}]
    if critic is not None:
        groups.append({"params": _trained(critic), "scale": recipe.critic_lr / recipe.lr})
    options: dict[str, Any] = {
        "lr": recipe.lr,
        "betas": recipe.betas,
        "weight_decay": recipe.weight_decay,
    }
    if recipe.optimizer == "adamw_8bit":
        with needing("adam8bit", "optimizer=adamw_8bit"):
            logging.getLogger("bitsandbytes").setLevel(logging.ERROR)  # of kernels we do not use
            # Averages have 8 bits and, for each 256 of them, a scale; small tensors keep theirs in
            # float32. Dettmers et al. 2022, "8-bit Optimizers via Block-wise Quantization".
            from bitsandbytes.optim import AdamW8bit
        return AdamW8bit(groups, **options)
    return torch.optim.AdamW(groups, **options, fused=True)


def require_extras(recipe: Recipe) -> None:
    """Raise ``UserError`` if a package is missing that training asks for later, after a warm start
    and an evaluation."""
    if recipe.lora:
        require("lora", "peft", what="training adapters")
    if recipe.optimizer == "adamw_8bit":
        require("adam8bit", "bitsandbytes", what="optimizer=adamw_8bit")


def _trained(network: nn.Module) -> list[nn.Parameter]:
    return [p for p in network.parameters() if p.requires_grad]


def learning_rate(recipe: Recipe, step: int) -> float:
    """The learning rate of a step: `warmup` steps of ramp, then the schedule.

    It depends on the step alone, so a resumed run needs no scheduler's state.
    """
    lr = recipe.lr * min(1.0, (step + 1) / (recipe.warmup + 1))
    done = max(0, step - recipe.warmup) / max(1, recipe.steps - recipe.warmup)
    if recipe.schedule == "linear":
        lr *= 1 - done
    if recipe.schedule == "cosine":
        lr *= (1 + math.cos(math.pi * done)) / 2
    return lr


def set_learning_rate(optimizer: torch.optim.Optimizer, recipe: Recipe, step: int) -> float:
    """Set the optimizer's learning rate to that of this step, and return it."""
    lr = learning_rate(recipe, step)
    for group in optimizer.param_groups:
        group["lr"] = lr * group.get("scale", 1.0)
    return lr


def loss_scaler(recipe: Recipe, device: torch.device) -> torch.amp.GradScaler:
    """What multiplies the loss, so that small gradients are not 0 in float16; else it does nothing.

    A gradient that overflows is left out and halves the scale; 200 steps without one double it.
    Source: Micikevicius et al. 2018, "Mixed Precision Training", section 3.2.
    """
    return torch.amp.GradScaler(
        torch.device(device).type,
        init_scale=2.0**14,
        growth_interval=200,
        enabled=recipe.dtype == "float16",
    )


def optimizer_step(
    losses: Iterable[Tensor],
    optimizer: torch.optim.Optimizer,
    recipe: Recipe,
    step: int,
    scaler: torch.amp.GradScaler,
) -> Tensor:
    """One step down the gradient of `losses`; returns its norm before clipping.

    Each network (parameter group) is clipped on its own; the norm returned is the first one's.
    With an enabled `scaler` the gradients are those of the scaled losses; if they overflow, no
    weight changes and the norm is 0.
    Raises ``NonFinite``, before a weight is changed, where loss or gradient is NaN or infinite.
    """
    scaler.unscale_(optimizer)
    lengths = [
        nn.utils.clip_grad_norm_(group["params"], recipe.max_grad_norm)
        for group in optimizer.param_groups
    ]
    # One that overflows at a small scale, too, is infinite whatever multiplies it.
    at_fault = lengths if scaler.get_scale() <= 1 else []
    require_finite(losses, at_fault, step, recipe)
    scaler.step(optimizer)
    scaler.update()
    optimizer.zero_grad()  # while rollouts are sampled their memory is wanted
    return torch.nan_to_num(lengths[0], nan=0.0, posinf=0.0)


def require_finite(
    losses: Iterable[Tensor], lengths: Iterable[Tensor], step: int, recipe: Recipe
) -> None:
    """Raise ``NonFinite`` if one of the scalars is NaN or infinite; they are read together."""
    named = [("loss", loss) for loss in losses] + [("gradient's length", x) for x in lengths]
    values = torch.stack([value.detach().double() for _, value in named]).tolist()
    for (what, _), value in zip(named, values, strict=True):
        if not math.isfinite(value):
            raise NonFinite(
                f"the {what} is {value} at step {step + 1}: lower lr (now {recipe.lr:g}) "
                f"or max_grad_norm (now {recipe.max_grad_norm:g})"
            )


def autocast(device: torch.device, dtype: str, keep_rounded: bool = True) -> torch.autocast:
    """The precision in which something is computed. Weights and optimizer stay in float32.

    Within one such context, the rounded weights are computed once and kept. Let it end before an
    optimizer step; do without it if weights change inside, or if memory is short.
    """
    return torch.autocast(
        torch.device(device).type,
        torch.float16 if dtype == "float16" else torch.bfloat16,
        enabled=dtype != "float32",
        cache_enabled=keep_rounded,
    )
