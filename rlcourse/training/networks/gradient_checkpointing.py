"""Gradient checkpointing: activations are thrown away and computed again in the backward pass.

A transformer block then keeps its input only, for about a third more computing. Hugging Face's
blocks do so while they are in train mode; a policy is kept in eval mode, because dropout would
make the log-probs trained with differ from those sampled with. So the blocks alone change mode,
and only for the pass that needs it.
Source: Chen et al. 2016, "Training Deep Nets with Sublinear Memory Cost".
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import nn
from transformers.modeling_layers import GradientCheckpointingLayer

from rlcourse.errors import UserError


def enable_gradient_checkpointing(model: nn.Module) -> None:
    """Let `model` recompute its blocks. Raises UserError where this kind of model cannot."""
    # Transformers 6 will know the first name only.
    names = ("activation_checkpointing_enable", "gradient_checkpointing_enable")
    enable: Any = next((getattr(model, name) for name in names if hasattr(model, name)), None)
    if enable is None or not _blocks(model):
        raise UserError(
            f"{type(model).__name__} cannot recompute: set gradient_checkpointing=false"
        )
    enable({"use_reentrant": False})


def uses_gradient_checkpointing(model: nn.Module) -> bool:
    """Whether a forward pass now is to keep no activations."""
    return torch.is_grad_enabled() and any(
        getattr(block, "gradient_checkpointing", False) for block in _blocks(model)
    )


@contextmanager
def block_inputs_only(model: nn.Module) -> Iterator[None]:
    """The forward pass inside keeps the blocks' inputs only."""
    blocks = _blocks(model)
    try:
        for block in blocks:
            block.training = True  # of the block itself, not of the dropout inside
        yield
    finally:
        for block in blocks:
            block.training = False


def _blocks(model: nn.Module) -> list[nn.Module]:
    return [m for m in model.modules() if isinstance(m, GradientCheckpointingLayer)]
