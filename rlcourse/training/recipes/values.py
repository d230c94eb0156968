"""What pydantic refuses in a recipe, said in one sentence with the nearest value that is right."""

import difflib
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError
from pydantic_core import ErrorDetails, PydanticKnownError

from rlcourse.errors import UserError

M = TypeVar("M", bound=BaseModel)
WANTED = {
    "int": "a whole number",
    "float": "a number",
    "string": "text",
    "bool": "true or false",
    "dict": "'key: value' lines",
}


def nearest(word: str, choices: Iterable[str]) -> str:
    """``: did you mean 'lr'?``, or nothing where no choice is near."""
    close = difflib.get_close_matches(word, list(choices), cutoff=0.6)
    swapped = [choice for choice in close if sorted(choice) == sorted(word)]
    return f": did you mean '{(swapped + close)[0]}'?" if close else ""


def validated(kind: type[M], values: dict[str, Any], prefix: str = "") -> M:
    """``kind(**values)``. Raises ``UserError`` about the first value that does not fit."""
    try:
        return kind(**values)
    except ValidationError as refused:
        error = refused.errors()[0]
        raise UserError(_sentence(error, prefix + str(error["loc"][0]))) from None


def _sentence(error: ErrorDetails, name: str) -> str:
    value, kind, limits = error["input"], error["type"], error.get("ctx", {})
    if kind == "extra_forbidden":
        return f"there is no {name}"
    if kind == "literal_error":
        choices = re.findall(r"'([^']+)'", limits["expected"])
        return f"{name} cannot be '{value}'" + (
            nearest(str(value), choices) or ": choose from " + ", ".join(choices)
        )
    if kind == "greater_than":
        return f"{name} must be greater than {limits['gt']:g}, not {value}"
    if kind in ("greater_than_equal", "less_than_equal"):
        side, limit = ("least", limits.get("ge")), ("most", limits.get("le"))
        word, bound = side if kind == "greater_than_equal" else limit
        return f"{name} must be at {word} {bound}, not {value}; the nearest is {name}={bound}"
    if kind == "finite_number":
        return f"{name} must be finite, not {value}"
    if kind in ("tuple_type", "missing", "too_long"):
        return f"{name} must be two numbers such as [0.9, 0.95], not {value!r}"
    return f"{name} must be {WANTED.get(kind.split('_')[0], error['msg'])}, not {value!r}"


def _number(kind: Literal["int_type", "float_type"]) -> BeforeValidator:
    """YAML reads 1e-4 as text; and true is not a number here."""

    def read(value: Any) -> Any:
        if isinstance(value, bool):
            raise PydanticKnownError(kind)
        try:
            return float(value) if isinstance(value, str) else value
        except ValueError:
            return value

    return BeforeValidator(read)


def _text(value: Any) -> Any:
    return str(value) if isinstance(value, Path) else value


Whole = Annotated[int, _number("int_type")]
Number = Annotated[float, _number("float_type")]
Text = Annotated[str, BeforeValidator(_text)]
Truth = Annotated[bool, Field(strict=True)]


class _Group(BaseModel):
    model_config = ConfigDict(extra="forbid", allow_inf_nan=False)


def _layers(targets: Any) -> Any:
    several = targets if isinstance(targets, (list, tuple)) else [targets]
    if not several or not all(isinstance(name, str) for name in several):
        raise UserError(f"lora.targets must be names of linear layers, not {targets!r}")
    return targets


class Rewards(_Group):
    """The weight of each reward."""

    correctness: Number = 1.0
    format: Number = 0.0
    length: Number = 0.0


class Lora(_Group):
    """Adapters in place of all weights."""

    rank: Whole = Field(16, ge=1)
    alpha: Number = Field(default_factory=lambda given: 2.0 * given.get("rank", 0), gt=0)
    targets: Annotated[Any, AfterValidator(_layers)] = "all-linear"


class Truncate(_Group):
    """Weights trainer/sampler: at most `cap`, or 0 above it."""

    mode: Literal["truncate", "mask"] = "truncate"
    cap: Number = Field(2.0, ge=1)


def _inner(name: str, kind: type[_Group], refused: str, optional: bool = True) -> AfterValidator:
    """A dictionary in a recipe, checked and completed by `kind`; empty, it may mean none."""

    def check(given: dict) -> dict:
        if optional and not given:
            return {}
        for key in given:
            if key not in kind.model_fields:
                known = " and ".join(kind.model_fields)
                hint = nearest(str(key), kind.model_fields) or f": there are {known}"
                raise UserError(f"{refused} '{key}'{hint}")
        return validated(kind, given, prefix=f"{name}.").model_dump()

    return AfterValidator(check)


Dictionary = dict[str, Any]
RewardWeights = Annotated[Dictionary, _inner("rewards", Rewards, "there is no reward", False)]
Adapters = Annotated[Dictionary, _inner("lora", Lora, "lora has no key")]
TokenWeights = Annotated[Dictionary, _inner("truncate", Truncate, "truncate has no key")]
