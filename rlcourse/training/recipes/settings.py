"""The settings of each algorithm: what it has a use for, and nothing else.

`class_of` makes an algorithm's class: it has the settings that the facts of its row in
``methods.METHODS`` imply, and those that its functions ask for.
"""

import inspect
from collections.abc import Mapping
from functools import cache
from typing import Any, ClassVar, Literal

import yaml
from pydantic import Field, create_model, model_validator
from pydantic.fields import FieldInfo

from rlcourse.errors import UserError
from rlcourse.training.recipes.fields import Fields, Surroundings, facts_of, setting
from rlcourse.training.recipes.methods import (
    CLIPPED,
    KL,
    METHODS,
    RATIO,
    WIDE,
    Method,
    resolved,
)
from rlcourse.training.recipes.values import Number, Text, Truth, Whole, nearest, validated

# What a function asks for by name, and the settings that come with it.
ASKED: dict[str, tuple[str, ...]] = {
    **{"old_logprobs": RATIO, "clip": CLIPPED, "clip_low": CLIPPED, "clip_high": WIDE},
    **{"cap": (*RATIO, "cap"), "eps": ("advantage_eps",), "beta": KL},
}
KINDS = {int: Whole, float: Number, str: Text, bool: Truth}


class Recipe(Fields):
    """Everything that decides a run; all values are checked. ``recipe.help()`` lists them."""

    has: ClassVar[frozenset[str]] = frozenset(Fields.model_fields)  # the algorithm's settings

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
        refuse_unknown(values)
        return validated(class_of(values["algorithm"]), values)

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
        return self.model_dump(mode="json", include=set(self.has))

    @classmethod
    def settings(cls) -> dict[str, FieldInfo]:
        """What is known of each setting that the algorithm has."""
        return {name: field for name, field in cls.model_fields.items() if name in cls.has}

    def arguments(self) -> dict[str, Any]:
        """Settings by name, as a function may ask for them: not whose words are learned, nor on
        which machine. What the method does not have is at its default."""
        values = {k: v for k, v in self if k not in Surroundings.model_fields}
        high = values["clip_high"] or values["clip"]
        values |= {"max_tokens": self.max_tokens, "eps": values["advantage_eps"]}
        return values | {"clip_low": values["clip"], "clip_high": high}

    def to_yaml(self) -> str:
        """The recipe as a YAML file's text."""
        return yaml.safe_dump(self.to_dict(), sort_keys=False, allow_unicode=True)

    def help(self) -> str:
        """A line a setting that the algorithm has: name, the recipe's value, and what it is."""
        shown = {k: "null" if v is None else str(v) for k, v in self.to_dict().items()}
        lines = []
        for name, field in self.settings().items():
            engine = " (not with --engine trl)" if facts_of(field)["local"] else ""
            lines.append(f"{name:22} {shown[name]:16} {field.description}{engine}")
        return "\n".join(lines)

    @model_validator(mode="after")
    def _fits_the_method(self):
        method, name = self.method, self.algorithm
        rows = method.rows(self.prompts_per_step, self.group_size)
        if self.minibatches > rows:
            raise UserError(
                f"minibatches must be at most {rows}, the rows of a batch, not {self.minibatches}"
            )
        samples_pairs = method.compares_pairs and self.pairs is None
        if self.group_size < 2 and (method.compares_groups or samples_pairs):
            verb = "compares" if method.compares_groups else "pairs"
            raise UserError(
                f"{name} {verb} the completions of a question: "
                f"group_size must be at least 2, not {self.group_size}"
            )
        if method.compares_pairs and method.trains_policy and self.beta == 0:
            raise UserError(f"{name} needs a beta greater than 0, such as beta=0.1")
        return self


def class_of(algorithm: str) -> type[Recipe]:
    """The class of an algorithm's settings. Raises ``UserError`` where there is none."""
    if algorithm not in METHODS:
        hint = nearest(str(algorithm), METHODS) or ": choose from " + ", ".join(METHODS)
        raise UserError(f"algorithm cannot be '{algorithm}'{hint}")
    return _class_of(algorithm, METHODS[algorithm])


def default_settings() -> dict[str, Any]:
    """{setting: its default}, of all algorithms of the package."""
    return {k: "grpo" if f.is_required() else f.default for k, f in Fields.model_fields.items()}


@cache
def _class_of(algorithm: str, method: Method) -> type[Recipe]:
    named, own = method.settings, dict[str, Any]()
    if named is None:
        named, own = _asked_for(method)
    has = {"algorithm", *named, *own}
    for name, field in Fields.model_fields.items():
        facts = facts_of(field)["of"]
        if facts is None or any(getattr(method, fact) for fact in facts):
            has.add(name)
    own["algorithm"] = (Literal[algorithm], Field(description="how the policy learns"))
    if "group_size" not in has:
        own["group_size"] = (Whole, 1)
    kind = create_model(algorithm, __base__=Recipe, **own)
    kind.has = frozenset(has)
    return kind


def _asked_for(method: Method) -> tuple[tuple[str, ...], dict[str, Any]]:
    """The settings that a method's functions ask for. A parameter that has a default, and that is
    not a setting yet, becomes one."""
    asked: dict[str, Any] = {}
    for function in (method.loss, method.advantages):
        asked |= {} if function is None else inspect.signature(resolved(function)).parameters
    own = {
        name: (KINDS[type(parameter.default)], setting(parameter.default, "of its own"))
        for name, parameter in asked.items()
        if name not in {*Fields.model_fields, *ASKED} and type(parameter.default) in KINDS
    }
    return tuple(name for key, names in ASKED.items() if key in asked for name in names), own


def refuse_unknown(values: Mapping[str, Any], where: str = "") -> None:
    """Raise ``UserError`` for the first key that the algorithm of `values` has not.

    `where` is the file that the keys are in.
    """
    algorithm = values["algorithm"]
    for key in values:
        if key not in class_of(algorithm).settings():
            refuse_misspelled(key, where)
            owners = [name for name in METHODS if key in class_of(name).settings()]
            raise UserError(
                f"{where and f'{where}: '}{algorithm} has no setting {key}: it is one of "
                f"{', '.join(owners)}"
            )


def refuse_misspelled(key: str, where: str = "") -> None:
    """Raise ``UserError`` if no method has a setting of this name."""
    known = {name for algorithm in METHODS for name in class_of(algorithm).settings()}
    if key not in known:
        hint = nearest(str(key), sorted(known))
        raise UserError(f"{where or 'the recipe'} has no key '{key}'{hint}")
