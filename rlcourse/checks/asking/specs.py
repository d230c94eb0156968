"""Arguments that are not plain data, said in a few words of data.

A case crosses a process boundary as JSON and tensor bytes, so a policy or an optimizer is a
``Spec`` in it, and is built where the student's function is called. A new kind is one entry in
``KINDS``: how to build it, and what to record of it after the call.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from rlcourse.checks.asking.episodes import scripted_environments, scripted_speaker, told
from rlcourse.checks.asking.stand_in import StandIn

MODE = "in training mode"


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


class _Bias(torch.nn.Module):
    """Logits that are a table plus one bias for all its rows: a second parameter tensor."""

    def __init__(self, vocab_size: int):
        super().__init__()
        self.bias = torch.nn.Parameter(torch.zeros(vocab_size))

    def forward(self, table: Tensor) -> Tensor:
        return table + self.bias


def _toy_policy(built, stale_gradient=0.0, bias=False, **options):
    from rlcourse.policy.toy import ToyPolicy

    policy = ToyPolicy(**options).double().eval()
    if bias:
        extra = _Bias(policy.vocab_size).double()
        torch.nn.utils.parametrize.register_parametrization(policy, "logits", extra)
    if stale_gradient:  # what a previous batch left behind
        for parameter in policy.parameters():
            parameter.grad = torch.full_like(parameter, stale_gradient)
    return policy


def _parameters(policy: torch.nn.Module) -> dict[str, Any]:
    plain = {"parametrizations.logits.original": "logits", "parametrizations.logits.0.bias": "bias"}
    found = {plain.get(name, name): p.detach().clone() for name, p in policy.named_parameters()}
    return found | {MODE: policy.training}


def _rollouts(built, **columns):
    from rlcourse.policy.rollouts import Rollouts

    return Rollouts(**columns)


def _sentences(built, tokens, mask, rewards):
    """A batch of a toy policy, which has no prompt."""
    no_prompt = tokens[:, :0]
    unscored = torch.zeros(tokens.shape, dtype=torch.float64)
    prompt = {"prompt_tokens": no_prompt, "prompt_mask": no_prompt.bool()}
    columns = {"tokens": tokens, "mask": mask, "rewards": rewards, "old_logprobs": unscored}
    return _rollouts(built, **prompt, **columns, group_size=len(tokens))


def _sgd(built, lr):
    return torch.optim.SGD(built["policy"].parameters(), lr=lr)


def _adamw(built, lr):
    return torch.optim.AdamW(built["policy"].parameters(), lr=lr)


def _generator(built, seed):
    """On the device of the tensors before it, which is where they are drawn for."""
    devices = (given.device for given in built.values() if isinstance(given, Tensor))
    return torch.Generator(next(devices, "cpu")).manual_seed(seed)


def _was_drawn_from(generator: torch.Generator) -> dict[str, bool]:
    fresh = torch.Generator(generator.device).manual_seed(generator.initial_seed())
    return {"drawn from": not torch.equal(fresh.get_state(), generator.get_state())}


DEFAULT_SEED = 1_202  # of torch's own generator, in a case that gives no other


def _no_generator(built) -> None:
    torch.default_generator.manual_seed(DEFAULT_SEED)


def _default_was_drawn_from(nothing: None) -> dict[str, bool]:
    kept = torch.initial_seed() == DEFAULT_SEED  # or else it was seeded anew
    return {"drawn from": kept and _was_drawn_from(torch.default_generator)["drawn from"]}


def _last_word(built):
    return lambda text: text.split()[-1] if text.strip() else None


class Once:
    """Tensors that can be iterated over only once, like `module.parameters()`."""

    def __init__(self, tensors: list[Tensor]):
        self.kept, self._iterator = tensors, iter(tensors)

    def __iter__(self):
        return self._iterator


def _iterator(built, items):
    return Once([item.clone() for item in items])


def _softmax_parameters(built, once=False, **tensors):
    """Parameters of a linear softmax policy: a weight (S, A) and, maybe, a bias (A,)."""
    parameters = [value.requires_grad_() for value in tensors.values()]
    return Once(parameters) if once else parameters


def _kept(parameters: list[Tensor] | Once) -> list[Tensor]:
    return parameters.kept if isinstance(parameters, Once) else parameters


def _values_and_gradients(parameters: list[Tensor] | Once) -> dict[str, Any]:
    parameters = _kept(parameters)
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
    parameters = _kept(built["parameters"])
    old = _action_logprobs(parameters, states).detach()
    if away is not None:
        old = (old + away).log_softmax(-1)
    return lambda: (old.exp() * (old - _action_logprobs(parameters, states))).sum(-1).mean()


def _mean_reward(built, states, rewards):
    """() -> E[R] of a linear softmax policy, the mean over states; `rewards` is (S, A)."""
    parameters = _kept(built["parameters"])
    return lambda: (_action_logprobs(parameters, states).exp() * rewards).sum(-1).mean()


def _stand_in(built, number, name, parameters):
    return StandIn(number, name, parameters)


def _estimator(built, compares):
    """(rewards (N,), group_size) → advantages (N,), compared with the mean of some of them."""

    def advantages(rewards: Tensor, group_size: int) -> Tensor:
        rows = len(rewards) // group_size
        if compares == "group":
            means = rewards.reshape(rows, group_size).mean(1).repeat_interleave(group_size)
        elif compares == "other layout":  # the rows of a group thought to be `rows` apart
            means = rewards.reshape(group_size, rows).mean(0).repeat(group_size)
        else:
            one = {"batch": rewards.mean(), "best": rewards.max(), "nothing": torch.zeros(())}
            means = one[compares]
        return rewards - means

    return advantages


def _weighted_loss(built, weights):
    """logprobs (N, T) → −Σ weights · logprobs: a token counts where its weight is not 0."""
    return lambda logprobs: -(weights.to(logprobs.device) * logprobs).sum()


def _trainee(built, number):
    from rlcourse.policy.trainee import Trainee

    return Trainee(StandIn(number, "policy", ["do"]))


KINDS: dict[str, Kind] = {
    "toy_policy": Kind(_toy_policy, _parameters),
    "rollouts": Kind(_rollouts),
    "sentences": Kind(_sentences),
    "sgd": Kind(_sgd),
    "adamw": Kind(_adamw),
    "generator": Kind(_generator),
    "watched_generator": Kind(_generator, _was_drawn_from),
    "no_generator": Kind(_no_generator, _default_was_drawn_from),  # None: draw from torch's own
    "last_word": Kind(_last_word),  # another way to read a completion, (text) -> str | None
    "iterator": Kind(_iterator),  # over tensors, for an argument that may be any Iterable
    "softmax_parameters": Kind(_softmax_parameters, _values_and_gradients),
    "mean_kl": Kind(_mean_kl),
    "mean_reward": Kind(_mean_reward),
    "estimator": Kind(_estimator),
    "weighted_loss": Kind(_weighted_loss),
    "scripted_speaker": Kind(scripted_speaker, lambda speaker: speaker.after()),
    "scripted_environments": Kind(scripted_environments, told),
    "trainee": Kind(_trainee),  # a language model that a contest holds
    "stand_in": Kind(_stand_in),  # an implementation to be tested, known through calls only
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
