"""How a setting is declared, and what it is where a method does not have it."""

from typing import Any, ClassVar

from pydantic import BaseModel, ConfigDict, Field
from pydantic.fields import FieldInfo

# A setting that a method does not have is off, so one loop serves all methods; see `groups`.
OFF: dict[str, Any] = {}


def setting(
    default, help: str, low=None, high=None, above=None, local="", otherwise=..., trl=""
) -> Any:
    """A setting: its default, what it is, and the values that it accepts.

    `local` says why only the local engine does it; TRL takes no value but `otherwise`, by default
    the default. `trl` is what TRL calls the same.
    """
    facts = {"local": local, "otherwise": default if otherwise is ... else otherwise, "trl": trl}
    return Field(default, description=help, ge=low, le=high, gt=above, json_schema_extra=facts)


def facts_of(field: FieldInfo) -> dict[str, Any]:
    """What else was declared of a setting; of a method's name nothing was."""
    facts = field.json_schema_extra
    return facts if isinstance(facts, dict) else {"local": "", "otherwise": None, "trl": ""}


class Settings(BaseModel):
    """A group of settings."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)
    # What to say of a setting that this method lacks: {setting: words after the method's name}.
    instead: ClassVar[dict[str, str]] = {}

    def __getattr__(self, name: str) -> Any:
        if name in OFF:
            return OFF[name]
        return super().__getattr__(name)  # type: ignore[misc]
