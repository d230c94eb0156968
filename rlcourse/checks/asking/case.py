"""One call that a function is tested on, as data that can cross a pipe to where it is called."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
from torch import Tensor


@dataclass(frozen=True)
class Case:
    """One call: keyword arguments, and a few words on what is special about them.

    With ``tracked`` the gradient is recorded for every floating tensor; it is compared for those in
    ``differentiable``, and for those in ``constants``, which should get none. ``atol`` replaces the
    tolerance if results are statistical. With ``raises`` only the type of the exception is
    compared. A case at the ``edge`` tests care, not the idea: an empty row, another dtype, an
    error. With ``exact_dtype`` float32 is not accepted for float64, even if nothing is
    differentiated.
    """

    label: str
    arguments: dict[str, Any]
    differentiable: tuple[str, ...] = ()
    constants: tuple[str, ...] = ()
    atol: float | None = None
    raises: bool = False
    tracked: bool = False
    edge: bool = False
    exact_dtype: bool = False

    @property
    def compared(self) -> tuple[str, ...]:
        """Arguments whose gradients are judged."""
        return (*self.differentiable, *self.constants)

    @cached_property
    def scale(self) -> tuple[bool, float]:
        """Whether an argument holds float32, and the largest number of all."""
        tensors = [
            t for name, t in self.arguments.items() if name != "mask" and isinstance(t, Tensor)
        ]
        single = any(t.dtype == torch.float32 for t in tensors if t.numel())
        return single, largest_number(tensors)

    def question(self) -> "Case":
        """The case without its purpose: all that the answering side may know."""
        return Case("", self.arguments, tracked=self.tracked)


def tensors_in(value: Any) -> Iterator[Tensor]:
    """The tensors of `value`, however deep in lists, tuples and dictionaries."""
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, list | tuple):
        for item in value:
            yield from tensors_in(item)
    elif isinstance(value, dict):
        yield from tensors_in(list(value.values()))


def largest_number(value: Any) -> float:
    """The largest finite magnitude in the floating tensors of `value`; 0 if there is none."""
    floats = [t.detach().double() for t in tensors_in(value) if t.is_floating_point() and t.numel()]
    return max((t.nan_to_num(0, 0, 0).abs().max().item() for t in floats), default=0.0)
