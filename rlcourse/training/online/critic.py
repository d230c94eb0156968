"""PPO's critic: what return the model expects from each token on, and the advantages it implies.

The critic is a copy of the starting policy's body with a scalar head. It and the policy are two
networks with two learning rates and one optimizer; neither's gradient reaches the other.
"""

from dataclasses import replace
from functools import partial

import torch
from torch import Tensor, nn

from rlcourse.algorithms import returns_to_go
from rlcourse.errors import UserError
from rlcourse.policy.rollouts import Rollouts
from rlcourse.training.functions.calling import call_by_name, call_for_tensor, call_loss
from rlcourse.training.networks.micro_batches import MicroBatches
from rlcourse.training.networks.value_head import token_scores
from rlcourse.training.recipes.methods import Function, Method, name_of
from rlcourse.training.recipes.settings import Recipe


def state_values(critic: nn.Module, rollouts: Rollouts) -> Tensor:
    """V (N, T) of the text *before* each completion token, 0 on padding. Differentiable."""
    return token_scores(critic, rollouts)[:, :-1].masked_fill(~rollouts.mask, 0.0)


@torch.no_grad()
def with_values(
    critic: MicroBatches, rollouts: Rollouts, recipe: Recipe, method: Method
) -> tuple[Rollouts, dict[str, float]]:
    """The rollouts with the critic's values, whitened advantages and returns, (N, T) each.

    The KL penalty is in the rewards. ``explained_variance`` is 1 − Var(return − V) / Var(return)
    over real tokens, of what the tokens did earn from there on.
    """
    mask, shape = rollouts.mask, tuple(rollouts.mask.shape)
    ref_logprobs = rollouts.old_logprobs if rollouts.ref_logprobs is None else rollouts.ref_logprobs
    values = critic.read(partial(state_values, critic.network), rollouts)
    rewards = call_for_tensor(
        method.function("kl_shaped_rewards"),
        shape,
        scores=rollouts.rewards,
        logprobs=rollouts.old_logprobs,
        ref_logprobs=ref_logprobs,
        mask=mask,
        settings=recipe.arguments(),
    )
    assert method.advantages is not None, "a method with a critic has an estimator"
    advantages, returns = estimates(method.advantages, rewards, values, mask, recipe)
    advantages = call_for_tensor(method.function("whiten"), shape, x=advantages, mask=mask)
    earned = returns_to_go(rewards, mask, recipe.gamma)[mask]
    surprise = (earned - values[mask]).var(correction=0)
    explained = 1 - surprise / earned.var(correction=0).clamp(min=1e-8)
    rollouts = replace(rollouts, values=values, returns=returns, advantages=advantages)
    return rollouts, {"explained_variance": explained.item()}


def estimates(
    estimator: Function, rewards: Tensor, values: Tensor, mask: Tensor, recipe: Recipe
) -> tuple[Tensor, Tensor]:
    """Advantages and returns (N, T) of an estimator such as ``gae``."""
    pair = call_by_name(
        estimator,
        "the advantage estimator",
        rewards=rewards,
        values=values,
        mask=mask,
        settings=recipe.arguments(),
    )
    fits = isinstance(pair, tuple) and len(pair) == 2
    if not fits or not all(isinstance(x, Tensor) and x.shape == mask.shape for x in pair):
        raise UserError(
            f"the advantage estimator {name_of(estimator)} must return (advantages, returns), "
            f"two tensors of shape {tuple(mask.shape)}"
        )
    if not all(bool(x.isfinite().all()) for x in pair):
        raise UserError(f"the advantage estimator {name_of(estimator)} returned NaN or infinity")
    return pair


def critic_backward(
    critic: MicroBatches, batch: Rollouts, recipe: Recipe, method: Method
) -> Tensor:
    """The critic's loss on a minibatch, a scalar, whose gradient is then in the critic."""
    loss_of = partial(
        call_loss,
        method.function("value_loss"),
        of="values",
        returns=batch.returns,
        old_values=batch.values,
        mask=batch.mask,
        settings=recipe.arguments(),
    )
    read = partial(state_values, critic.network)
    return critic.backward(read, batch, lambda values: loss_of(values=values)).loss
