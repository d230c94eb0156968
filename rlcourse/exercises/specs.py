"""Arguments that are not plain data, said in a few words of data.

A case crosses a process boundary as JSON and tensor bytes, so a policy or an optimizer stands in it
as a ``Spec``, and is built where the student's function is called. A new kind is one entry in
``KINDS``: how to build it, and what to record of it after the call.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor


@dataclass(frozen=True)
class Spec:
    """What to build: a key of ``KINDS`` and its options, which are numbers, strings or tensors."""

    kind: str
    options: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Kind:
    """``build(built, **options)`` sees the arguments before it; ``observe`` reads afterwards."""

    build: Callable[..., Any]
    observe: Callable[[Any], dict[str, Any]] = lambda thing: {}


def _toy_policy(built, stale_gradient=0.0, **options):
    from rlcourse.policy.toy import ToyPolicy

    policy = ToyPolicy(**options).double()
    if stale_gradient:  # what a previous batch left behind
        for parameter in policy.parameters():
            parameter.grad = torch.full_like(parameter, stale_gradient)
    return policy


def _parameters(policy: torch.nn.Module) -> dict[str, Any]:
    return {name: p.detach().clone() for name, p in policy.named_parameters()}


def _rollouts(built, **columns):
    from rlcourse.policy.rollouts import Rollouts

    return Rollouts(**columns)


def _sgd(built, lr):
    return torch.optim.SGD(built["policy"].parameters(), lr=lr)


def _adamw(built, lr):
    return torch.optim.AdamW(built["policy"].parameters(), lr=lr)


def _generator(built, seed):
    return torch.Generator().manual_seed(seed)


def _last_word(built):
    return lambda text: text.split()[-1] if text.strip() else None


def _softmax_parameters(built, **tensors):
    """Parameters of a linear softmax policy: a weight (S, A) and, maybe, a bias (A,)."""
    return [value.requires_grad_() for value in tensors.values()]


def _values_and_gradients(parameters: list[Tensor]) -> dict[str, Any]:
    values = {f"[{i}]": p.detach().clone() for i, p in enumerate(parameters)}
    gradients = {  # none at all counts as 0
        f"[{i}].grad": torch.zeros_like(p) if p.grad is None else p.grad.detach().clone()
        for i, p in enumerate(parameters)
    }
    return values | gradients


def _action_logprobs(parameters: list[Tensor], states: Tensor) -> Tensor:
    bias = parameters[1] if len(parameters) > 1 else 0
    return (states @ parameters[0] + bias).log_softmax(-1)


def _mean_kl(built, states, away=None):
    """() -> KL(πold‖πθ), the mean over states; πold is where the parameters start, or `away`."""
    parameters = built["parameters"]
    old = _action_logprobs(parameters, states).detach()
    if away is not None:
        old = (old + away).log_softmax(-1)
    return lambda: (old.exp() * (old - _action_logprobs(parameters, states))).sum(-1).mean()


def _mean_reward(built, states, rewards):
    """() -> E[R] of a linear softmax policy, the mean over states; `rewards` is (S, A)."""
    parameters = built["parameters"]
    return lambda: (_action_logprobs(parameters, states).exp() * rewards).sum(-1).mean()


def _matrix(built, entries):
    return lambda vector: entries @ vector


KINDS: dict[str, Kind] = {
    "toy_policy": Kind(_toy_policy, _parameters),
    "rollouts": Kind(_rollouts),
    "sgd": Kind(_sgd),
    "adamw": Kind(_adamw),
    "generator": Kind(_generator),
    "last_word": Kind(_last_word),  # another way to read a completion, (text) -> str | None
    "softmax_parameters": Kind(_softmax_parameters, _values_and_gradients),
    "mean_kl": Kind(_mean_kl),
    "mean_reward": Kind(_mean_reward),
    "matrix": Kind(_matrix),  # known through x ↦ A x only
}


def build(spec: Spec, built: dict[str, Any]) -> Any:
    """The argument that `spec` describes; `built` holds the arguments before it, by name."""
    options = {
        k: v.clone() if isinstance(v, Tensor) else build(v, built) if isinstance(v, Spec) else v
        for k, v in spec.options.items()
    }
    return KINDS[spec.kind].build(built, **options)


def observe(spec: Spec, thing: Any) -> dict[str, Any]:
    """What the call has left in `thing`, as data: for a policy, its parameters."""
    return KINDS[spec.kind].observe(thing)
