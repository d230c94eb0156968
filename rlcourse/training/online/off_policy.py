"""Sampler, old policy and trainer: three policies that are the same only in the simplest loop.

Tokens are drawn by the sampler: an engine with kernels of its own, or weights of some steps ago.
The old policy, the denominator of PPO's ratio, is what the trainer was when it turned to the
batch. Where the two differ, the trainer scores the batch once more before its updates, and each
token is weighted by the truncated ratio of its probabilities under the two, π_old/π_sampler.
Source: Yao et al. 2025, "Your Efficient RL Framework Secretly Brings You Off-Policy RL Training".
"""

import inspect
from dataclasses import replace

import torch

from rlcourse.errors import UserError
from rlcourse.policy.rollouts import Rollouts
from rlcourse.training.functions.calling import call_for_tensor
from rlcourse.training.recipes.methods import Method, name_of, resolved
from rlcourse.training.recipes.settings import Recipe


def scores_anew(recipe: Recipe, method: Method) -> bool:
    """Whether the trainer must score a batch before its updates.

    Where there is a single update it can take that update's own log-probs instead, see
    `is_its_own_old_policy`, unless a weight has to be known beforehand.
    """
    several = recipe.num_iterations * recipe.minibatches > 1
    reads_three = "sampler_logprobs" in inspect.signature(resolved(method.loss)).parameters
    if reads_three and recipe.truncate:
        name = name_of(method.loss)
        raise UserError(f"the loss {name} weighs its tokens itself: remove truncate")
    anew = several and recipe.old_logprobs == "recomputed"
    return bool(recipe.truncate) or reads_three or anew


def is_its_own_old_policy(recipe: Recipe) -> bool:
    """Whether the ratio is that of an update's log-probs to themselves, detached: exactly 1."""
    single = recipe.num_iterations * recipe.minibatches == 1
    return recipe.old_logprobs == "recomputed" and single


def with_old_policy(rollouts: Rollouts, old_logprobs: torch.Tensor) -> Rollouts:
    """The rollouts with the trainer's `old_logprobs` (N, T), and the sampler's in addition."""
    return replace(rollouts, old_logprobs=old_logprobs, sampler_logprobs=rollouts.old_logprobs)


def weighed(
    rollouts: Rollouts, recipe: Recipe, method: Method
) -> tuple[Rollouts, dict[str, float]]:
    """The rollouts with each token's advantage times its truncated weight.

    Losses are homogeneous in the advantages, so this weights the objective and does not affect a KL
    penalty. ``sampler_weight/mean`` is near 1 where sampler and trainer are one policy,
    ``sampler_weight/capped`` the share of tokens that the cap has changed.
    """
    if not recipe.truncate:
        return rollouts, {}
    old, sampler, mask = rollouts.old_logprobs, rollouts.sampler_logprobs, rollouts.mask
    assert sampler is not None and rollouts.advantages is not None
    weights = call_for_tensor(
        method.function("truncated_weights"),
        tuple(mask.shape),
        trainer_logprobs=old,
        sampler_logprobs=sampler,
        mask=mask,
        **recipe.truncate,
    ).detach()
    advantages = rollouts.advantages
    advantages = advantages[:, None] if advantages.ndim == 1 else advantages
    facts = {
        "sampler_weight/mean": weights[mask].mean().item(),
        "sampler_weight/capped": ((old - sampler).exp() > recipe.truncate["cap"])[mask]
        .float()
        .mean()
        .item(),
    }
    return replace(rollouts, advantages=advantages * weights), facts
