"""One optimizer step, and what guards it: learning rate, precision, gradient length, NaN."""

import math
import sys
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
    done = max(0, step - recipe.warmup) / max(1, recipe.steps - recipe.warmup)
    if recipe.schedule == "linear":
        lr *= 1 - done
    if recipe.schedule == "cosine":
        lr *= (1 + math.cos(math.pi * done)) / 2
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
    lengths = [
        nn.utils.clip_grad_norm_(group["params"], recipe.max_grad_norm)
        for group in optimizer.param_groups
    ]
    require_finite(losses, lengths, step, recipe)
    optimizer.step()
    optimizer.zero_grad()  # while rollouts are sampled their memory is wanted
    return lengths[0]


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


def warn_of_slow_precision(device: torch.device, dtype: str) -> None:
    """Say so where a GPU computes in this precision by emulation only, as a T4 does bfloat16."""
    if device.type != "cuda" or dtype != "bfloat16":
        return
    if not torch.cuda.is_bf16_supported(including_emulation=False):
        print(
            f"rlcourse: {torch.cuda.get_device_name(device)} emulates bfloat16, which is slower "
            "than float32: leave out dtype=bfloat16 where the memory allows it",
            file=sys.stderr,
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
