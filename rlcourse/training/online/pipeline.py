"""Batches between the sampler and the trainer, and what else a run carries from step to step.

Where sampling and training overlap, as on two groups of machines, the sampler uses weights that the
trainer has since updated, so a batch is some steps old when it is learned from. Here the two take
turns, which saves no time but still shows what staleness does to learning.
"""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field, fields
from typing import Any

import torch
from torch import Tensor, nn

from rlcourse.policy.rollouts import Rollouts
from rlcourse.training.networks.optimizer import loss_scaler
from rlcourse.training.recipes.settings import Recipe

Batch = tuple[Rollouts, dict[str, Tensor]]  # rows, and the parts of their reward


@dataclass
class Pipeline:
    """Batches that wait, oldest first: step t learns from what was sampled at step t − lag.

    The first `lag` steps have nothing older than the start, so step 0 samples for all of them.
    """

    lag: int
    steps: int
    waiting: deque[Batch] = field(default_factory=deque)

    def batch_for(self, step: int, sample: Callable[[int], Batch]) -> Batch:
        """The batch of this step; ``sample(place)`` draws that of a later one with today's policy.

        To be called once for every step, in order.
        """
        for place in range(step + len(self.waiting), min(step + self.lag + 1, self.steps)):
            self.waiting.append(sample(place))
        return self.waiting.popleft()


@dataclass
class Carried:
    """What a checkpoint must hold besides weights and optimizer for a run to continue exactly."""

    pipeline: Pipeline
    scaler: torch.amp.GradScaler  # of the loss; it does nothing where it is not enabled
    reference: nn.Module | None = None  # where it is renewed on the way

    @classmethod
    def of(
        cls, recipe: Recipe, reference: nn.Module | None, device: torch.device | str = "cpu"
    ) -> "Carried":
        """What a run of this recipe carries at its start."""
        pipeline = Pipeline(recipe.sampler_staleness, recipe.steps)
        scaler = loss_scaler(recipe, torch.device(device))
        return cls(pipeline, scaler, reference if recipe.reference_every else None)

    def state_dict(self) -> dict[str, Any]:
        """Tensors and plain values; empty where the recipe carries nothing."""
        state: dict[str, Any] = {}
        if self.pipeline.lag:
            state["waiting"] = [
                ({f.name: getattr(rollouts, f.name) for f in fields(rollouts)}, rewards)
                for rollouts, rewards in self.pipeline.waiting
            ]
        if self.reference is not None:
            state["reference"] = self.reference.state_dict()
        if self.scaler.is_enabled():
            state["scaler"] = self.scaler.state_dict()
        return state

    def load_state_dict(self, state: dict[str, Any], device: torch.device) -> None:
        """Put back what `state_dict` gave."""
        batches = state.get("waiting", [])
        self.pipeline.waiting = deque(
            (Rollouts(**rows).to(device), rewards) for rows, rewards in batches
        )
        if self.reference is not None:
            self.reference.load_state_dict(state["reference"])
        if self.scaler.is_enabled():
            self.scaler.load_state_dict(state["scaler"])


@torch.no_grad()
def renew(reference: nn.Module, policy: nn.Module) -> None:
    """Copy the policy's weights into the reference, in the reference's precision.

    Source: the outer loop of iterative GRPO, Shao et al. 2024 (DeepSeekMath), algorithm 1.
    """
    for frozen, current in zip(reference.parameters(), policy.parameters(), strict=True):
        frozen.copy_(current)
