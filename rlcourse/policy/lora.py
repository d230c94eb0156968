"""Low-rank adapters: a large model learns through a few small matrices, its own weights frozen.

Every linear map W becomes W + (α/r)·B·A with A (r, in) and B (out, r), B zero at first. Only A and
B have gradients and optimizer state, and the model without them is the frozen reference that a KL
penalty needs, at no memory. Source: Hu et al. 2021, "LoRA", section 4. PEFT makes the adapters.
"""

import os
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from rlcourse.errors import UserError
from rlcourse.installed import needing
from rlcourse.policy.model import Policy
from rlcourse.policy.other_files import put_adapter_on
from rlcourse.policy.rollouts import Rollouts


def add_adapters(
    policy: Policy,
    rank: int,
    alpha: float,
    targets: str | Sequence[str] = "all-linear",
    seed: int = 0,
) -> Policy:
    """Freeze the policy's weights and give it adapters to train, in float32. In place.

    `targets` are the names of linear layers (``["q_proj", "v_proj"]``), or "all-linear" for all of
    them but the output layer. A starts random, from `seed`.

    Raises:
        UserError: PEFT is not installed, or the model has no such layers.
    """
    with needing("lora", "training adapters"):
        from peft import LoraConfig, inject_adapter_in_model
    chosen = targets if isinstance(targets, str) else list(targets)
    config = LoraConfig(r=rank, lora_alpha=alpha, target_modules=chosen, task_type="CAUSAL_LM")
    try:
        with torch.random.fork_rng():
            torch.manual_seed(seed)
            inject_adapter_in_model(config, policy.model)
    except ValueError as error:
        linear = {n.rpartition(".")[2] for n, m in policy.model.named_modules() if is_linear(m)}
        raise UserError(
            f"adapters cannot be put on {targets} of this model ({str(error).splitlines()[0]}); "
            f"its linear layers are {', '.join(sorted(linear))}"
        ) from None
    return _only_adapters_learn(policy)


def continue_adapter(policy: Policy, directory: str | os.PathLike) -> Policy:
    """Freeze the policy's weights and train on the adapter that `directory` holds. In place.

    Raises:
        UserError: PEFT is not installed, or the adapter does not fit the policy's model.
    """
    policy.model = put_adapter_on(policy.model, directory, merged=False)
    return _only_adapters_learn(policy)


def _only_adapters_learn(policy: Policy) -> Policy:
    for name, parameter in policy.model.named_parameters():
        parameter.requires_grad_("lora_" in name)
        if parameter.requires_grad:
            parameter.data = parameter.data.float()
    policy.eval()
    return policy


def is_linear(module: nn.Module) -> bool:
    """Whether an adapter fits on a module."""
    return isinstance(module, nn.Linear) or type(module).__name__ == "Conv1D"


def adapted_layers(model: nn.Module) -> dict[str, Any]:
    """The layers that have an adapter, by name."""
    return {name: module for name, module in model.named_modules() if hasattr(module, "lora_A")}


def has_adapters(model: nn.Module) -> bool:
    """Whether `add_adapters` was here."""
    return bool(adapted_layers(model))


def merge_adapters(policy: Policy) -> Policy:
    """Merge the adapters into the weights, in place, which leaves an ordinary model."""
    for name, layer in adapted_layers(policy.model).items():
        layer.merge()
        policy.model.set_submodule(name, layer.get_base_layer())
    vars(policy.model).pop("peft_config", None)  # PEFT would warn of it if adapters came again
    policy.requires_grad_(True)
    return policy


class WithoutAdapters(Policy):
    """The policy without its adapters. Shares its weights."""

    def __init__(self, policy: Policy):
        super().__init__(policy.model, policy.tokenizer)

    @torch.no_grad()
    def logprobs(self, rollouts: Rollouts) -> Tensor:
        """As `Policy.logprobs`, without gradient."""
        layers = adapted_layers(self.model).values()
        for layer in layers:
            layer.enable_adapters(False)
        try:
            return super().logprobs(rollouts)
        finally:
            for layer in layers:
                layer.enable_adapters(True)
