"""Functions of the lessons on a GPU, where a tensor made without ``device=`` is on the CPU.

An answer that a check accepts on a laptop may make such tensors, because the checks run on the CPU.
It is still right, so it is called on copies there, and the reader is told once what to change.
Gradients pass through the copies.
"""

import sys
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor

MIXED = ("same device", "device type for generator", "tensor to numpy")  # in what torch says
told: set[str] = set()


def call_on_its_device(function: Callable, name: str, arguments: Mapping[str, Any]) -> Any:
    """``function(**arguments)``, its tensors on the device that the arguments are on."""
    device = device_of(arguments)
    if device is None or device.type == "cpu":
        return function(**arguments)
    try:
        value = function(**arguments)
    except (RuntimeError, TypeError) as error:
        if not mixes_devices(error):
            raise
        value = function(**{key: _moved(given, "cpu") for key, given in arguments.items()})
    if any(tensor.device != device for tensor in _tensors(value)):
        _tell(name, device)
    return _moved(value, device)


def device_of(arguments: Mapping[str, Any]) -> torch.device | None:
    """Where the tensors among the arguments are; None where there are none."""
    return next((given.device for given in arguments.values() if isinstance(given, Tensor)), None)


def mixes_devices(error: Exception) -> bool:
    """Whether this is torch's complaint about tensors of two devices, or of the wrong one."""
    return any(words in str(error) for words in MIXED)


def how_to_stay(name: str, device: torch.device) -> str:
    """What to change in a function that makes tensors elsewhere."""
    return (
        f"{name} makes a tensor on the CPU, and its arguments are on {device}: give "
        "torch.zeros, torch.arange and the like the device of an argument, device=x.device"
    )


def _tell(name: str, device: torch.device) -> None:
    if name not in told:
        told.add(name)
        print(f"rlcourse: {how_to_stay(name, device)} (until then, it is called on copies)",
              file=sys.stderr)  # fmt: skip


def _tensors(value: Any) -> list[Tensor]:
    items = value if isinstance(value, tuple | list) else [value]
    return [item for item in items if isinstance(item, Tensor)]


def _moved(value: Any, device: torch.device | str) -> Any:
    if isinstance(value, Tensor):
        return value.to(device)
    if isinstance(value, tuple | list):
        return type(value)(_moved(item, device) for item in value)
    return value
