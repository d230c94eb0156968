"""A function that is known only by what it computes: the student's side of being the grader.

A test that a student writes is called with a ``StandIn``. It has no code to look at, and no name
but the one that all have: every call sends its arguments to the side that knows which function is
meant, and brings back what that function returned. Autograd works through it as through the
function itself.
"""

import builtins
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor

from rlcourse.checks.asking.case import tensors_in

# (number, arguments, which of them are tracked, weights of the results or None) → a reply.
Ask = Callable[[int, dict[str, Any], tuple[str, ...], list | None], dict[str, Any]]
_ask: list[Ask] = []


def ask_through(ask: Ask) -> None:
    """From now on stand-ins send their calls to `ask`."""
    _ask[:] = [ask]


class StandIn:
    """Takes the function's arguments, by place or by name, and returns what it returns."""

    def __init__(self, number: int, name: str, parameters: list[str]):
        self._number, self._parameters, self.__name__ = number, parameters, name

    def __call__(self, *args, **kwargs):
        arguments = self._by_name(args, kwargs)
        leaves = {
            name: value
            for name, value in arguments.items()
            if isinstance(value, Tensor) and value.requires_grad
        }
        tracked = tuple(leaves) if torch.is_grad_enabled() else ()
        plain = {name: _detached(value) for name, value in arguments.items()}

        def ask(weights: list | None) -> dict[str, Any]:
            return _reply(_ask[0](self._number, plain, tracked, weights))

        reply = ask(None)
        results = list(tensors_in(reply["value"]))
        if any(reply["graph"]):
            results = list(_Afar.apply(ask, results, reply["graph"], *leaves.values()))
        return _rebuilt(reply["value"], iter(results))

    def _by_name(self, args: tuple, kwargs: dict[str, Any]) -> dict[str, Any]:
        if len(args) > len(self._parameters):
            raise TypeError(f"{self.__name__} takes at most {len(self._parameters)} arguments")
        placed = dict(zip(self._parameters, args, strict=False))
        if twice := placed.keys() & kwargs.keys():
            raise TypeError(f"{self.__name__} got two values for {min(twice)!r}")
        return {**placed, **kwargs}

    def __repr__(self) -> str:
        return f"<an implementation of {self.__name__}>"


class _Afar(torch.autograd.Function):
    """Results that were computed elsewhere, whose gradients are asked for when they are needed."""

    @staticmethod
    def forward(ctx, ask, results, graph, *leaves):
        ctx.ask, ctx.graph = ask, graph
        ctx.mark_non_differentiable(
            *(r for r, flows in zip(results, graph, strict=True) if not flows)
        )
        return tuple(results)

    @staticmethod
    def backward(ctx, *weights):
        kept = [w if flows else None for w, flows in zip(weights, ctx.graph, strict=True)]
        return None, None, None, *ctx.ask(kept)["gradients"]


def _rebuilt(value: Any, results: Iterator[Tensor]) -> Any:
    if isinstance(value, Tensor):
        return next(results)
    if isinstance(value, list | tuple):
        return type(value)(_rebuilt(item, results) for item in value)
    return value


def _detached(value: Any) -> Any:
    return value.detach() if isinstance(value, Tensor) else value


def _reply(reply: dict[str, Any]) -> dict[str, Any]:
    """The reply; an exception that the function raised is raised here as well."""
    if "error" in reply:
        kind = getattr(builtins, str(reply["error"].type), RuntimeError)
        known = isinstance(kind, type) and issubclass(kind, Exception)
        raise (kind if known else RuntimeError)(reply["error"].message)
    return reply
