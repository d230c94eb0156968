"""Values of a recipe's fields: put into the field's type, and refused where they make no sense."""

import difflib
import math
import types
import typing
from collections.abc import Iterable
from pathlib import Path

from rlcourse.errors import UserError

DEFAULT_REWARDS = {"correctness": 1.0, "format": 0.0}


def nearest(word: str, choices: Iterable[str]) -> str:
    close = difflib.get_close_matches(word, list(choices), cutoff=0.6)
    swapped = [choice for choice in close if sorted(choice) == sorted(word)]
    return f": did you mean '{(swapped + close)[0]}'?" if close else ""


def converted(name: str, value, kind):
    if isinstance(kind, types.UnionType):
        if value is None:
            return None
        kind = kind.__args__[0]
    if typing.get_origin(kind) is tuple:
        if not isinstance(value, (list, tuple)) or len(value) != 2:
            raise UserError(f"{name} must be two numbers such as [0.9, 0.95], not {value!r}")
        return tuple(converted(name, number, float) for number in value)
    if kind is dict:
        if not isinstance(value, dict):
            raise UserError(f"{name} must hold 'key: value' lines, not {value!r}")
        return dict(value)
    if kind is str and isinstance(value, (str, Path)):
        return str(value)
    if kind is bool and isinstance(value, bool):
        return value
    if kind in (int, float) and not isinstance(value, bool):
        try:
            number = float(value)  # YAML reads 1e-4 as text
        except (TypeError, ValueError):
            number = None
        if number is not None and kind is float:
            return number
        if number is not None and number.is_integer():
            return int(number)
    wanted = {int: "a whole number", float: "a number", str: "text", bool: "true or false"}[kind]
    raise UserError(f"{name} must be {wanted}, not {value!r}")


def check_range(name: str, value, facts) -> None:
    low, high, above = facts["low"], facts["high"], facts["above"]
    if name == "betas":
        low, high = 0.0, 0.9999999
    if isinstance(value, float) and not math.isfinite(value):
        raise UserError(f"{name} must be finite, not {value}")
    if above is not None and value <= above:
        raise UserError(f"{name} must be greater than {above:g}, not {value}")
    if low is not None and value < low:
        raise UserError(f"{name} must be at least {low}, not {value}; the nearest is {name}={low}")
    if high is not None and value > high:
        raise UserError(f"{name} must be at most {high}, not {value}; the nearest is {name}={high}")


def checked_rewards(weights: dict) -> dict:
    for key in weights:
        if key not in DEFAULT_REWARDS:
            hint = nearest(str(key), DEFAULT_REWARDS) or ": rewards are correctness and format"
            raise UserError(f"there is no reward '{key}'{hint}")
    checked = {
        key: converted(f"rewards.{key}", weight, float)
        for key, weight in (DEFAULT_REWARDS | weights).items()
    }
    for key, weight in checked.items():
        if not math.isfinite(weight):
            raise UserError(f"rewards.{key} must be finite, not {weight}")
    return checked


def checked_lora(adapters: dict) -> dict:
    """Rank, α and targets of the adapters, all three, or nothing."""
    if not adapters:
        return {}
    for key in adapters:
        if key not in ("rank", "alpha", "targets"):
            hint = nearest(str(key), ("rank", "alpha", "targets"))
            raise UserError(f"lora has no key '{key}'{hint or ': it has rank, alpha and targets'}")
    rank = converted("lora.rank", adapters.get("rank", 16), int)
    alpha = converted("lora.alpha", adapters.get("alpha", 2 * rank), float)
    if rank < 1:
        raise UserError(f"lora.rank must be at least 1, not {rank}; the nearest is lora.rank=1")
    if not alpha > 0 or not math.isfinite(alpha):
        raise UserError(f"lora.alpha must be greater than 0, not {alpha:g}")
    targets = adapters.get("targets", "all-linear")
    if not isinstance(targets, str) and not (
        isinstance(targets, (list, tuple)) and targets and all(isinstance(t, str) for t in targets)
    ):
        raise UserError(f"lora.targets must be names of linear layers, not {targets!r}")
    return {"rank": rank, "alpha": alpha, "targets": targets}


def checked_truncate(weights: dict) -> dict:
    """Mode and cap of the weights, both, or nothing."""
    if not weights:
        return {}
    for key in weights:
        if key not in ("mode", "cap"):
            hint = nearest(str(key), ("mode", "cap")) or ": it has mode and cap"
            raise UserError(f"truncate has no key '{key}'{hint}")
    mode = weights.get("mode", "truncate")
    if mode not in ("truncate", "mask"):
        hint = nearest(str(mode), ("truncate", "mask")) or ": choose from truncate, mask"
        raise UserError(f"truncate.mode cannot be '{mode}'{hint}")
    cap = converted("truncate.cap", weights.get("cap", 2.0), float)
    if not cap >= 1 or not math.isfinite(cap):
        raise UserError(f"truncate.cap must be at least 1, the weight of equals, not {cap:g}")
    return {"mode": mode, "cap": cap}
