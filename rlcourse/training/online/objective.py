"""What an update minimizes: the method's loss, called with whatever its parameters name.

A loss may ask for log-probs, ``logprobs``, ``old_logprobs``, ``ref_logprobs`` and
``sampler_logprobs``, for ``entropy``, that of the distribution at each token, for ``values`` and
``returns`` of a critic, ``advantages`` and ``mask``, (N, T) each, and for settings of the recipe.
``logprobs`` and ``entropy`` carry the gradient.
"""

import inspect
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from rlcourse.algorithms import masked_mean
from rlcourse.policy.rollouts import Rollouts
from rlcourse.training.functions.calling import call_loss
from rlcourse.training.networks.forward import logprobs_and_entropy, shared_prompt_logprobs
from rlcourse.training.online.off_policy import is_its_own_old_policy
from rlcourse.training.recipes.methods import Method, resolved
from rlcourse.training.recipes.settings import Recipe


@dataclass(frozen=True)
class Objective:
    """A method's loss under a recipe."""

    method: Method
    recipe: Recipe

    @property
    def asks_for_entropy(self) -> bool:
        """Whether entropies are to be read; they have a gradient in every row."""
        asked = inspect.signature(resolved(self.method.loss)).parameters
        return "entropy" in asked or self.recipe.entropy_bonus != 0

    @property
    def skips_rows(self) -> bool:
        """Whether rows may have no gradient, so that they need not be read."""
        return not self.asks_for_entropy

    def read(self, policy, batch: Rollouts) -> Tensor:
        """What the loss needs of the policy: log-probs (n, T), or with entropies (n, 2, T)."""
        if self.asks_for_entropy:
            return logprobs_and_entropy(policy, batch)
        return shared_prompt_logprobs(policy, batch)

    def logprobs(self, read: Tensor) -> Tensor:
        """The log-probs, or what belongs to them, in what was read."""
        return read[:, 0] if self.asks_for_entropy else read

    def loss(self, read: Tensor, batch: Rollouts) -> tuple[Tensor, Tensor | None]:
        """The loss of what was read, and its clip fraction or None."""
        recipe, logprobs = self.recipe, self.logprobs(read)
        ref_logprobs = batch.old_logprobs if batch.ref_logprobs is None else batch.ref_logprobs
        own = is_its_own_old_policy(recipe)
        entropy: dict[str, Any] = {"entropy": read[:, 1]} if self.asks_for_entropy else {}
        loss, clip_fraction = call_loss(
            self.method.loss,
            logprobs=logprobs,
            old_logprobs=logprobs.detach() if own else batch.old_logprobs,  # the μ updates share
            sampler_logprobs=batch.sampler_logprobs,
            ref_logprobs=ref_logprobs,  # without a penalty (β = 0) any will do
            advantages=batch.advantages,
            values=batch.values,
            returns=batch.returns,
            mask=batch.mask,
            settings=recipe.arguments(),
            **entropy,
        )
        if recipe.entropy_bonus:
            loss = loss - recipe.entropy_bonus * masked_mean(read[:, 1], batch.mask)
        return loss, clip_fraction
