"""How a setting is declared, and what it is where a method does not have it."""

from typing import Any, ClassVar

from pydantic import BaseModel, ConfigDict, Field

# A setting that a method does not have is off. So one loop serves all methods.
OFF: dict[str, Any] = {
    "group_size": 1,
    "temperature": 1.0,
    "top_k": None,
    "top_p": None,
    "fault": None,
    "num_iterations": 1,
    "minibatches": 1,
    "sampler_staleness": 0,
    "old_logprobs": "sampled",
    "truncate": {},
    "overlong_filter": False,
    "beta": 0.0,
    "reference_every": 0,
    "entropy_bonus": 0.0,
    "lora": {},
}


def setting(
    default, help: str, low=None, high=None, above=None, local: str = "", otherwise=...
) -> Any:
    """A setting: its default, what it is, and the values that it accepts.

    `local` says why only the local engine does it; TRL takes no value but `otherwise`, by default
    the default.
    """
    facts = {"local": local, "otherwise": default if otherwise is ... else otherwise}
    return Field(default, description=help, ge=low, le=high, gt=above, json_schema_extra=facts)


class Settings(BaseModel):
    """A group of settings."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)
    # What to say of a setting that this method lacks: {setting: words after the method's name}.
    instead: ClassVar[dict[str, str]] = {}

    def __getattr__(self, name: str) -> Any:
        if name in OFF:
            return OFF[name]
        return super().__getattr__(name)  # type: ignore[misc]
