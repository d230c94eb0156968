"""Functions of the lessons, called *by parameter name*, and what they return, checked.

The trainer has ``logprobs``, ``old_logprobs``, ``advantages``, ``mask``, ``beta`` and so on, and
passes each function those that its signature names. So a function from a notebook can replace any
of the library's.
"""

import difflib
import inspect
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from rlcourse.errors import UserError
from rlcourse.policy.rollouts import Rollouts
from rlcourse.training.recipes.methods import Function, name_of, resolved

NONE: Mapping[str, Any] = {}
# In what torch says where tensors are on different devices.
MIXED = ("same device", "device type for generator", "tensor to numpy")


def call_by_name(
    function: Function, what: str, settings: Mapping[str, Any] = NONE, **available
) -> Any:
    """Call `function` with those of `available`, and of a recipe's `settings`, that its parameters
    name.

    Raises:
        UserError: it asks for something that the trainer does not have, or is not written yet;
            `what` ("the loss") says what it was wanted for.
    """
    function, name = resolved(function), name_of(function)
    available, arguments = {**settings, **available}, {}
    for parameter in inspect.signature(function).parameters.values():
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            continue
        if parameter.name in available:
            arguments[parameter.name] = available[parameter.name]
        elif parameter.default is parameter.empty:
            close = difflib.get_close_matches(parameter.name, available, n=1)
            has = [*(key for key in available if key not in settings), "the recipe's settings"]
            hint = f": did you mean '{close[0]}'?" if close else f"; it has {', '.join(has)}"
            raise UserError(
                f"{what} {name} asks for '{parameter.name}', which the trainer does not have{hint}"
            )
    try:
        value = function(**arguments)
    except NotImplementedError:
        raise UserError(f"{what} {name} is not written yet: finish {name} first") from None
    except (RuntimeError, TypeError) as error:
        if not any(words in str(error) for words in MIXED):
            raise
        raise UserError(
            f"{what} {name} makes a tensor on the CPU, and its arguments are on a GPU: give "
            "torch.zeros, torch.arange and the like the device of an argument, device=x.device"
        ) from error
    place = next((given for given in arguments.values() if isinstance(given, Tensor)), None)
    return value if place is None or not isinstance(value, Tensor) else value.to(place.device)


def call_loss(loss: Function, of: str = "logprobs", **available) -> tuple[Tensor, Tensor | None]:
    """The loss as a scalar tensor and, where the function returns it too, the clip fraction.

    `of` is the argument that carries its gradient.
    """
    name = name_of(loss)
    value = call_by_name(loss, "the loss", **available)
    value, clip_fraction = value[:2] if isinstance(value, tuple) else (value, None)
    if not isinstance(value, Tensor) or value.numel() != 1:
        raise UserError(f"the loss {name} must return one number as a tensor, not {_told(value)}")
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
    name = name_of(step)
    available = {
        "policy": policy,
        "optimizer": optimizer,
        "batch": rollouts,
        "rollouts": rollouts,
    }
    value = call_by_name(step, "the step", recipe.arguments(), **available)
    losses = torch.as_tensor(value, dtype=torch.float64) if value is not None else torch.empty(0)
    if losses.numel() == 0 or not losses.isfinite().all():
        raise UserError(f"the step {name} must return its loss as a finite number, not {value!r}")
    return losses.mean().item()


def call_estimator(
    estimator: Function | None,
    rewards: Tensor,
    mask: Tensor,
    settings: Mapping[str, Any] = NONE,
    **more,
) -> Tensor:
    """The advantages, (N,) or (N, T); the rewards themselves if there is no estimator.

    `more` is what an estimator may name besides, such as the `tokens` (N, T).
    """
    if estimator is None:
        return rewards
    given = {"rewards": rewards, "mask": mask, "settings": settings, **more}
    shapes = tuple(rewards.shape), tuple(mask.shape)
    return call_for_tensor(estimator, *shapes, what="the advantage estimator", **given).detach()


def call_for_tensor(
    function: Function, *shapes: tuple[int, ...], what: str = "the function", **available
) -> Tensor:
    """What a function of the lessons returns, if that is a finite tensor of one of the shapes."""
    value = call_by_name(function, what, **available)
    name = name_of(function)
    if not isinstance(value, Tensor) or value.shape not in shapes:
        raise UserError(
            f"{what} {name} must return a tensor of shape {shapes[0]}, not {_told(value)}"
        )
    if not value.isfinite().all():
        bad = (~value.isfinite()).nonzero()[0].tolist()
        raise UserError(f"{what} {name} returned {value[tuple(bad)].item()} at index {bad}")
    return value


def call_reward(reward: Callable, **available) -> Tensor:
    """The rewards (N,) float of a reward function, one for each of `completions`.

    Rewards read text, so all of this is on the CPU.
    """
    name = name_of(reward)
    available = {k: v.cpu() if isinstance(v, Tensor) else v for k, v in available.items()}
    value = call_by_name(reward, "the reward", **available)
    n = len(available["completions"])
    if not isinstance(value, Tensor) or value.shape != (n,) or not value.isfinite().all():
        raise UserError(f"the reward {name} must return a tensor of {n} finite numbers")
    return value.detach().float().cpu()


def _told(value) -> str:
    return f"shape {tuple(value.shape)}" if isinstance(value, Tensor) else type(value).__name__
