"""What tells one algorithm from another: where its rows come from, its advantages, and its loss.

The functions are those that students write. They are called *by parameter name*: the trainer has
``logprobs``, ``old_logprobs``, ``advantages``, ``mask``, ``beta`` and so on, and hands each
function those that its signature names. So one from a notebook can stand in for any of them.
"""

import difflib
import inspect
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace

import torch
from torch import Tensor

from rlcourse import algorithms
from rlcourse.errors import UserError
from rlcourse.policy.rollouts import Rollouts


@dataclass(frozen=True)
class Method:
    """One row of the table: an algorithm is an estimator of advantages and a loss."""

    loss: Callable
    advantages: Callable | None = None  # None: the advantages are the plain rewards
    imitates: bool = False  # learns from demonstrations, samples nothing
    keeps_rewarded: bool = False  # learns from the rewarded completions only
    resamples: bool = False  # asks until enough groups have a signal, see dynamic_sampling.py
    critic: bool = False  # has a critic, see critic.py
    compares: bool = False  # learns from pairs of completions, see preferences.py
    step: Callable | None = None  # all updates of a batch; None: the loop's own
    functions: Mapping[str, Callable] = field(default_factory=dict)  # others it is made of

    def call(self, name: str, **available):
        """Call the function of that name with those of `available` that it asks for."""
        return call_by_name(self.functions[name], "the function", **available)

    def using(self, functions: Iterable[Callable], algorithm: str) -> "Method":
        """The method with these functions in place of its own of the same ``__name__``.

        Raises:
            UserError: `algorithm`, as the method is called, has no function of that name.
        """
        own = {f.__name__: f for f in (self.loss, self.advantages) if f} | dict(self.functions)
        given = {}
        for function in functions:
            name = getattr(function, "__name__", str(function))
            if name not in own:
                close = difflib.get_close_matches(name, own, n=1)
                hint = f": did you mean '{close[0]}'?" if close else f"; it uses {', '.join(own)}"
                raise UserError(f"{algorithm} uses no function '{name}'{hint}")
            given[name] = function
        now = own | given
        return replace(
            self,
            loss=now[self.loss.__name__],
            advantages=self.advantages and now[self.advantages.__name__],
            functions={name: now[name] for name in self.functions},
        )


def _functions(*functions: Callable) -> dict[str, Callable]:
    return {function.__name__: function for function in functions}


METHODS = {
    "sft": Method(algorithms.sft_loss, imitates=True),
    "rejection_sampling": Method(algorithms.sft_loss, keeps_rewarded=True),
    "reinforce": Method(algorithms.reinforce_loss),
    "rloo": Method(algorithms.reinforce_loss, algorithms.leave_one_out_advantages),
    "ppo": Method(
        algorithms.ppo_clip_loss,
        algorithms.gae,
        critic=True,
        functions=_functions(
            algorithms.kl_shaped_rewards, algorithms.whiten, algorithms.value_loss
        ),
    ),
    "grpo": Method(algorithms.grpo_loss, algorithms.group_normalized_advantages),
    "dr_grpo": Method(algorithms.dr_grpo_loss, algorithms.group_mean_advantages),
    "dapo": Method(
        algorithms.dapo_loss,
        algorithms.group_normalized_advantages,
        resamples=True,
        functions=_functions(algorithms.informative_groups, algorithms.overlong_penalty),
    ),
    "gspo": Method(algorithms.gspo_loss, algorithms.group_normalized_advantages),
    "dpo": Method(
        algorithms.dpo_loss,
        compares=True,
        functions=_functions(
            algorithms.preference_pairs,
            algorithms.sequence_logprobs,
            algorithms.implicit_rewards,
        ),
    ),
    "reward_model": Method(
        algorithms.bradley_terry_loss,
        compares=True,
        functions=_functions(
            algorithms.preference_pairs,
            algorithms.last_token_index,
            algorithms.reward_accuracy,
        ),
    ),
}


# Parameters that earlier versions of the lessons knew by another name.
RENAMED = {"rewards": "advantages", "updates": "num_iterations"}


def call_by_name(function: Callable, what: str, **available):
    """Call `function` with those of `available` that its parameters name.

    Raises:
        UserError: it asks for something that the trainer does not have, or is not written yet;
            `what` ("the loss") says what it was wanted for.
    """
    name = getattr(function, "__name__", type(function).__name__)
    arguments = {}
    for parameter in inspect.signature(function).parameters.values():
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            continue
        if parameter.name in available:
            arguments[parameter.name] = available[parameter.name]
        elif parameter.default is parameter.empty:
            now = RENAMED.get(parameter.name)
            close = difflib.get_close_matches(parameter.name, available, n=1)
            hint = f": did you mean '{close[0]}'?" if close else f"; it has {', '.join(available)}"
            hint = f": it is called '{now}' now" if now in available else hint
            raise UserError(
                f"{what} {name} asks for '{parameter.name}', which the trainer does not have{hint}"
            )
    try:
        return function(**arguments)
    except NotImplementedError:
        raise UserError(f"{what} {name} is not written yet: finish {name} first") from None


def call_loss(loss: Callable, of: str = "logprobs", **available) -> tuple[Tensor, Tensor | None]:
    """The loss as a scalar tensor and, where the function returns it too, the clip fraction.

    `of` is the argument that carries its gradient.
    """
    name = getattr(loss, "__name__", type(loss).__name__)
    value = call_by_name(loss, "the loss", **available)
    value, clip_fraction = value[:2] if isinstance(value, tuple) else (value, None)
    if not isinstance(value, Tensor) or value.numel() != 1:
        given = f"shape {tuple(value.shape)}" if isinstance(value, Tensor) else type(value).__name__
        raise UserError(f"the loss {name} must return one number as a tensor, not {given}")
    if not value.requires_grad:
        raise UserError(f"the loss {name} carries no gradient: it must be computed from `{of}`")
    return value.reshape(()), clip_fraction


def call_step(step: Callable, policy, optimizer, rollouts: Rollouts, recipe) -> float:
    """Let `step`, such as ``reinforce_step``, make all updates of a batch; its mean loss.

    It may name the batch `batch` or `rollouts`, whose ``rewards`` are the advantages too: what
    lesson 02's step reads as a reward is whatever the method weighs a completion by.
    """
    ref_logprobs = rollouts.old_logprobs if rollouts.ref_logprobs is None else rollouts.ref_logprobs
    rollouts = replace(rollouts, rewards=rollouts.advantages, ref_logprobs=ref_logprobs)
    name = getattr(step, "__name__", type(step).__name__)
    value = call_by_name(
        step,
        "the step",
        policy=policy,
        optimizer=optimizer,
        batch=rollouts,
        rollouts=rollouts,
        num_iterations=recipe.num_iterations,
        clip=recipe.clip,
        beta=recipe.beta,
        max_grad_norm=recipe.max_grad_norm,
    )
    losses = torch.as_tensor(value, dtype=torch.float64) if value is not None else torch.empty(0)
    if losses.numel() == 0 or not losses.isfinite().all():
        raise UserError(f"the step {name} must return its loss as a finite number, not {value!r}")
    return losses.mean().item()


def call_estimator(
    estimator: Callable | None, rewards: Tensor, mask: Tensor, **available
) -> Tensor:
    """The advantages, (N,) or (N, T); the rewards themselves where there is no estimator."""
    if estimator is None:
        return rewards
    name = getattr(estimator, "__name__", type(estimator).__name__)
    value = call_by_name(
        estimator, "the advantage estimator", rewards=rewards, mask=mask, **available
    )
    if not isinstance(value, Tensor) or value.shape not in (rewards.shape, mask.shape):
        given = f"shape {tuple(value.shape)}" if isinstance(value, Tensor) else type(value).__name__
        raise UserError(
            f"the advantage estimator {name} must return one advantage a completion, "
            f"shape {tuple(rewards.shape)}, not {given}"
        )
    if not value.isfinite().all():
        raise UserError(f"the advantage estimator {name} returned {_first_bad(value)}")
    return value.detach()


def call_for_tensor(function: Callable, shape: tuple[int, ...], **available) -> Tensor:
    """What a function of the lessons returns, if that is a finite tensor of this shape."""
    value = call_by_name(function, "the function", **available)
    name = getattr(function, "__name__", type(function).__name__)
    if not isinstance(value, Tensor) or value.shape != shape:
        given = f"shape {tuple(value.shape)}" if isinstance(value, Tensor) else type(value).__name__
        raise UserError(f"the function {name} must return a tensor of shape {shape}, not {given}")
    if not value.isfinite().all():
        raise UserError(f"the function {name} returned {_first_bad(value)}")
    return value


def call_reward(reward: Callable, **available) -> Tensor:
    """The rewards (N,) float of a reward function, one for each of `completions`."""
    name = getattr(reward, "__name__", type(reward).__name__)
    value = call_by_name(reward, "the reward", **available)
    n = len(available["completions"])
    if not isinstance(value, Tensor) or value.shape != (n,) or not value.isfinite().all():
        raise UserError(f"the reward {name} must return a tensor of {n} finite numbers")
    return value.detach().float()


def _first_bad(value: Tensor) -> str:
    bad = (~value.isfinite()).nonzero()[0].tolist()
    return f"{value[tuple(bad)].item()} at index {bad}"
