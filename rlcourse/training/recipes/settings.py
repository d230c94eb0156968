"""The settings of each algorithm: what it has a use for, and nothing else.

`class_of` makes an algorithm's class from groups of settings: those that the facts of its row in
``methods.METHODS`` imply, and those that its functions ask for.
"""

import inspect
from functools import cache
from typing import Any, Literal

import yaml
from pydantic import create_model, model_validator
from pydantic.fields import FieldInfo

from rlcourse.errors import UserError
from rlcourse.training.recipes.declaring import OFF, Settings, setting
from rlcourse.training.recipes.groups import (
    ALGORITHM,
    Adapted,
    Anchored,
    Bounded,
    Clipped,
    Critic,
    Descent,
    Evaluation,
    Imitation,
    Machine,
    Normalized,
    Online,
    Pairs,
    Problems,
    Ratio,
    Resampling,
    Selective,
    Smoothed,
    Taught,
    TokenWeighted,
    TrainsPolicy,
    Wide,
    WithHead,
)
from rlcourse.training.recipes.methods import METHODS, OURS, Method, resolved
from rlcourse.training.recipes.refusing import refuse_unknown
from rlcourse.training.recipes.values import Number, Text, Truth, Whole, nearest, validated


class Recipe(Evaluation, Machine, Descent, Problems):
    """Everything that decides a run. ``Recipe.help()`` lists the settings that all methods have,
    and a subclass's those of its algorithm; all values are checked."""

    @property
    def method(self) -> Method:
        """What the algorithm is made of, and facts about it."""
        method = METHODS[self.algorithm]
        return method.also_using("truncated_weights") if self.truncate else method

    @staticmethod
    def of(values: dict[str, Any]) -> "Recipe":
        """The recipe with these values, of the class that its ``algorithm`` (``grpo``) has.

        Raises:
            UserError: a wrong key or value, or a setting of another algorithm.
        """
        values = {"algorithm": "grpo"} | values
        kind = class_of(values["algorithm"])
        refuse_unknown(values, kind, classes())
        return validated(kind, values)

    def but(self, **changes: Any) -> "Recipe":
        """The same recipe with these settings changed (of ``rewards`` and the like, these keys).

        With another ``algorithm``, the settings that it has, too, are taken over.
        """
        algorithm = changes.get("algorithm", self.algorithm)
        known = class_of(algorithm).settings()
        values = {k: getattr(self, k) for k in self.model_fields_set if k in known}
        for name, value in changes.items():
            whole = values.get(name, {}) if isinstance(value, dict) else None
            values[name] = {**whole, **value} if isinstance(whole, dict) else value
        return Recipe.of(values | {"algorithm": algorithm})

    def to_dict(self) -> dict[str, Any]:
        """Plain values, as ``recipe.yaml`` holds them."""
        return self.model_dump(mode="json")

    @classmethod
    def settings(cls) -> dict[str, FieldInfo]:
        """What is known of each setting that the algorithm has."""
        return cls.model_fields

    def arguments(self) -> dict[str, Any]:
        """Settings by name, as a function may ask for them. What a function that was passed in
        asks for, and the method does not have, is at its default."""
        values = {k: v for k, v in (default_settings() | OFF | dict(self)).items() if k in handed()}
        high = values["clip_high"] or values["clip"]
        return (
            values
            | {"clip_low": values["clip"], "clip_high": high}
            | {"eps": values["advantage_eps"]}
        )

    def to_yaml(self) -> str:
        """The recipe as a YAML file's text."""
        return yaml.safe_dump(self.to_dict(), sort_keys=False, allow_unicode=True)

    @classmethod
    def help(cls) -> str:
        """One line a setting: name, default, and what it is."""
        return "\n".join(
            f"{name:22} {'' if field.is_required() else field.default!s:12} {field.description}"
            for name, field in cls.settings().items()
        )

    @model_validator(mode="after")
    def _can_be_compared(self):
        samples_pairs = self.method.compares_pairs and self.pairs is None
        if self.group_size < 2 and (self.method.compares_groups or samples_pairs):
            verb = "compares" if self.method.compares_groups else "pairs"
            raise UserError(
                f"{self.algorithm} {verb} the completions of a question: "
                f"group_size must be at least 2, not {self.group_size}"
            )
        if self.method.compares_pairs and self.method.trains_policy and self.beta == 0:
            raise UserError(f"{self.algorithm} needs a beta greater than 0, such as beta=0.1")
        return self


# What a function asks for by name, and the settings that come with it.
ASKED: dict[str, type[Settings]] = {
    **{"old_logprobs": Ratio, "clip": Clipped, "clip_low": Clipped, "clip_high": Wide},
    **{"cap": Bounded, "eps": Normalized, "beta": Anchored, "label_smoothing": Smoothed},
}
KINDS = {int: Whole, float: Number, str: Text, bool: Truth}


def class_of(algorithm: str) -> type[Recipe]:
    """The class of an algorithm's settings. Raises ``UserError`` where there is none."""
    if algorithm not in METHODS:
        hint = nearest(str(algorithm), METHODS) or ": choose from " + ", ".join(METHODS)
        raise UserError(f"algorithm cannot be '{algorithm}'{hint}")
    return _made_of_groups(algorithm, METHODS[algorithm])


def classes() -> dict[str, type[Recipe]]:
    """The class of each algorithm."""
    return {algorithm: class_of(algorithm) for algorithm in METHODS}


@cache
def default_settings() -> dict[str, Any]:
    """{setting: its default}, of all algorithms of the package."""
    fields = {
        k: f for name in METHODS if name in OURS for k, f in class_of(name).settings().items()
    }
    return {k: "grpo" if f.is_required() else f.default for k, f in fields.items()}


@cache
def handed() -> set[str]:
    """What a function may ask for: not whose words are learned, nor on which machine."""
    kept = {name for group in (Problems, Machine, Evaluation) for name in group.model_fields}
    return default_settings().keys() - kept | {"max_tokens", "clip_high"}


@cache
def _made_of_groups(algorithm: str, method: Method) -> type[Recipe]:
    """The groups that the method's facts imply, and its own."""
    facts: dict[type[Settings], bool] = {
        Resampling: method.resamples,
        Taught: method.taught,
        Critic: method.critic,
        Selective: method.keeps_rewarded,
        TokenWeighted: method.weighs_tokens,
        (Pairs if method.compares_pairs else Imitation if method.imitates else Online): True,
        (WithHead if method.trains_head else Adapted): True,
        TrainsPolicy: method.trains_policy,
    }
    own: dict[str, Any] = {"algorithm": (Literal[algorithm], ALGORITHM)}
    asked = method.settings
    if asked is None:
        asked, more = _asked_for(method)
        own |= more
    groups = [*asked, *(group for group, holds in facts.items() if holds)]
    groups = [g for g in groups if not any(g is not h and issubclass(h, g) for h in groups)]
    bases: Any = (*dict.fromkeys(groups), Recipe)
    return create_model(algorithm, __base__=bases, **own)


def _asked_for(method: Method) -> tuple[tuple[type[Settings], ...], dict[str, Any]]:
    """The groups that a method's functions ask for. A parameter that has a default, and that is
    not a setting yet, becomes one."""
    asked: dict[str, Any] = {}
    for function in (method.loss, method.advantages):
        asked |= {} if function is None else inspect.signature(resolved(function)).parameters
    known = default_settings().keys() | ASKED.keys()
    own = {
        name: (KINDS[type(parameter.default)], setting(parameter.default, "of its own"))
        for name, parameter in asked.items()
        if name not in known and type(parameter.default) in KINDS
    }
    return tuple(group for name, group in ASKED.items() if name in asked), own
