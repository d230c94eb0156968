"""Values in a few characters, for people."""

from typing import Any

import torch
from torch import Tensor

from rlcourse.checks.asking.calling import Opaque
from rlcourse.checks.asking.specs import Spec

LARGEST = 30  # elements of a tensor or list that is printed in full
LONGEST = 300  # characters
LARGEST_INTEGER = 10**60
ROUNDING = 1e-15  # what is left of a sum that is 0 on paper; no check tells it from 0
WRONG = "Wrong: "  # how the lines begin that list several mistakes


def show(value: Any, digits: int = 4) -> str:
    """`value` as one line, however large it is; a large tensor by its shape only."""
    return shortened(_show(value, digits), LONGEST)


def shortened(text: str, longest: int) -> str:
    """At most that many characters, ending in … if some are missing."""
    return text if len(text) <= longest else text[: longest - 1] + "…"


def _show(value: Any, digits: int) -> str:
    if isinstance(value, Tensor):
        return _show_tensor(value, digits)
    if isinstance(value, Spec):
        options = ", ".join(
            f"{name}={show(option, digits)}"
            for name, option in value.options.items()
            if not isinstance(option, Tensor) or option.numel() <= LARGEST
        )
        return f"{value.kind}({options})"
    if isinstance(value, Opaque):
        return f"<{value.type}>"
    if isinstance(value, bool) or value is None:
        return str(value)
    if isinstance(value, float):
        return _show_float(value, digits)
    if isinstance(value, str):
        return repr(value if len(value) <= 160 else value[:157] + "…")
    if isinstance(value, tuple | list):
        items = [show(item, digits) for item in value[:LARGEST]]
        items += [f"… {len(value)} in all"] * (len(value) > LARGEST)
        return f"({', '.join(items)})" if isinstance(value, tuple) else f"[{', '.join(items)}]"
    if isinstance(value, dict) and size_of(value) > LARGEST:
        return f"<dict of {len(value)}: {', '.join(map(repr, list(value)[:3]))}, …>"
    if isinstance(value, int) and abs(value) > LARGEST_INTEGER:
        return f"an integer of {value.bit_length()} bits"
    return str(value)


def show_pair(expected: Any, actual: Any) -> tuple[str, str]:
    """Both with as many digits as it takes to see that they differ."""
    for digits in (4, 8, 17):
        pair = show(expected, digits), show(actual, digits)
        if pair[0] != pair[1]:
            break
    return pair


def size_of(value: Any) -> int:
    """How many numbers and letters a reader of `value` would see."""
    if isinstance(value, Tensor):
        return value.numel()
    if isinstance(value, dict):
        return sum(map(size_of, value.values()))
    if isinstance(value, list | tuple):
        return sum(map(size_of, value))
    if isinstance(value, Spec):
        return size_of(value.options)
    return len(value) if isinstance(value, str) else 1


def _show_tensor(value: Tensor, digits: int) -> str:
    if value.numel() > LARGEST or (value.ndim > 1 and not value.numel()):
        kind = str(value.dtype).removeprefix("torch.")
        return f"<{kind} tensor of shape {tuple(value.shape)}>"
    if value.dtype == torch.bool:
        value = value.int()
    return _show_nested(value.tolist(), _digits_that_differ(value, digits))


def _digits_that_differ(value: Tensor, digits: int) -> int:
    """More of them where numbers that differ would look alike: 0.5 and 0.50001."""
    if not value.is_floating_point():
        return digits
    numbers = value.flatten().tolist()
    short, long = (len({_show_float(n, d) for n in numbers}) for d in (digits, 2 * digits))
    return 2 * digits if short < long else digits


def _show_nested(value: Any, digits: int) -> str:
    if isinstance(value, list):
        return "[" + ", ".join(_show_nested(item, digits) for item in value) + "]"
    return _show_float(value, digits) if isinstance(value, float) else str(value)


def _show_float(value: float, digits: int) -> str:
    if abs(value) < ROUNDING:
        return "0"  # minus zero, too
    return f"{value:.{digits}g}"
