"""The settings of each algorithm: what it has a use for, and nothing else.

An algorithm's class is made of groups of settings. `class_of` finds the class by the value of
``algorithm``, which tells one from another. A method that was added from outside the package gets
a class made of the groups that its functions ask for.
"""

import inspect
from functools import cache
from typing import Any, Literal, get_args

import yaml
from pydantic import create_model, model_validator
from pydantic.fields import FieldInfo

from rlcourse.errors import UserError
from rlcourse.training.recipes.declaring import OFF, Settings, setting
from rlcourse.training.recipes.groups import (
    ALGORITHM,
    NOT_ONLINE,
    Adapted,
    Anchored,
    Bounded,
    Clipped,
    Critic,
    Descent,
    Evaluation,
    Machine,
    Normalized,
    Online,
    Pairs,
    Passes,
    Penalized,
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
from rlcourse.training.recipes.methods import METHODS, Method, resolved
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
        values = {k: v for k, v in (default_settings() | OFF | dict(self)).items() if k in HANDED}
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
    def _has_completions_to_compare(self):
        samples_pairs = self.method.compares_pairs and self.pairs is None
        if self.group_size < 2 and (self.method.compares_groups or samples_pairs):
            verb = "compares" if self.method.compares_groups else "pairs"
            raise UserError(
                f"{self.algorithm} {verb} the completions of a question: "
                f"group_size must be at least 2, not {self.group_size}"
            )
        return self


# Algorithms


class SFT(Passes, Adapted, Recipe):
    """Supervised fine-tuning: imitation of demonstrations."""

    algorithm: Literal["sft"] = ALGORITHM
    instead = NOT_ONLINE


class RejectionSampling(Selective, Online, Adapted, Recipe):
    """Imitation of the policy's own best completions."""

    algorithm: Literal["rejection_sampling"] = ALGORITHM


class Reinforce(Online, Adapted, Recipe):
    """The policy gradient as it is."""

    algorithm: Literal["reinforce"] = ALGORITHM


class RLOO(Online, Adapted, Recipe):
    """The policy gradient against the mean of the question's other completions."""

    algorithm: Literal["rloo"] = ALGORITHM


class PPO(Critic, Anchored, TokenWeighted, Clipped, Online, WithHead, TrainsPolicy, Recipe):
    """A clipped ratio, and a critic."""

    algorithm: Literal["ppo"] = ALGORITHM


class GRPO(Anchored, Normalized, TokenWeighted, Clipped, Online, Adapted, Recipe):
    """A clipped ratio, and the group in the critic's place."""

    algorithm: Literal["grpo"] = ALGORITHM


class DrGRPO(TokenWeighted, Clipped, Online, Adapted, Recipe):
    """GRPO without its two divisors."""

    algorithm: Literal["dr_grpo"] = ALGORITHM


class DAPO(Resampling, Normalized, TokenWeighted, Wide, Online, Adapted, Recipe):
    """GRPO with four fixes."""

    algorithm: Literal["dapo"] = ALGORITHM


class GSPO(Normalized, Clipped, Online, Adapted, Recipe):
    """One ratio for a whole completion."""

    algorithm: Literal["gspo"] = ALGORITHM


class CISPO(Normalized, TokenWeighted, Bounded, Online, Adapted, Recipe):
    """A ratio that weighs, up to a bound, and never stops a gradient."""

    algorithm: Literal["cispo"] = ALGORITHM


class Distill(Taught, TokenWeighted, Wide, Online, Adapted, Recipe):
    """A teacher's word for every token that the student writes."""

    algorithm: Literal["distill"] = ALGORITHM


class DPO(Smoothed, Penalized, Pairs, Adapted, Recipe):
    """Preferences in place of rewards."""

    algorithm: Literal["dpo"] = ALGORITHM

    @model_validator(mode="after")
    def _has_a_reference(self):
        if self.beta == 0:
            raise UserError(f"{self.algorithm} needs a beta greater than 0, such as beta=0.1")
        return self


class RewardModel(Pairs, WithHead, Recipe):
    """A scalar head that tells better completions from worse."""

    algorithm: Literal["reward_model"] = ALGORITHM


_OURS = (
    SFT,
    RejectionSampling,
    Reinforce,
    RLOO,
    PPO,
    GRPO,
    DrGRPO,
    DAPO,
    GSPO,
    CISPO,
    Distill,
    DPO,
)
CLASSES: dict[str, type[Recipe]] = {
    get_args(kind.model_fields["algorithm"].annotation)[0]: kind for kind in (*_OURS, RewardModel)
}


# What a function may ask for: not whose words are learned, nor on which machine.
HANDED = {name for kind in CLASSES.values() for name in kind.settings()} - {
    *(name for group in (Problems, Machine, Evaluation) for name in group.model_fields)
} | {"max_tokens", "clip_high"}


# Methods from outside the package

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
    return CLASSES.get(algorithm) or _made_of_groups(METHODS[algorithm])


def classes() -> dict[str, type[Recipe]]:
    """The class of each algorithm."""
    return {algorithm: class_of(algorithm) for algorithm in METHODS}


@cache
def default_settings() -> dict[str, Any]:
    """{setting: its default}, of all algorithms of the package."""
    fields = {k: f for kind in CLASSES.values() for k, f in kind.settings().items()}
    return {k: "grpo" if f.is_required() else f.default for k, f in fields.items()}


@cache
def _made_of_groups(method: Method) -> type[Recipe]:
    """What a method's facts imply and its functions ask for. A parameter that has a default, and
    that is not a setting yet, becomes one."""
    asked: dict[str, Any] = {}
    for function in (method.loss, method.advantages):
        asked |= {} if function is None else inspect.signature(resolved(function)).parameters
    facts: dict[type[Settings], bool] = {
        (Pairs if method.compares_pairs else Passes if method.imitates else Online): True,
        (WithHead if method.trains_head else Adapted): True,
        TrainsPolicy: method.trains_policy,
        Critic: method.critic,
        Taught: method.taught,
        Selective: method.keeps_rewarded,
        Resampling: method.resamples,
        TokenWeighted: method.weighs_tokens,
    }
    groups = [group for group, holds in facts.items() if holds]
    groups += [group for name, group in ASKED.items() if name in asked and group not in groups]
    groups = [g for g in groups if not any(g is not h and issubclass(h, g) for h in groups)]
    known = {name for kind in CLASSES.values() for name in kind.settings()} | set(ASKED)
    own: dict[str, Any] = {
        name: (KINDS[type(parameter.default)], setting(parameter.default, "of its own"))
        for name, parameter in asked.items()
        if name not in known and type(parameter.default) in KINDS
    }
    bases: Any = (*groups, Recipe)
    return create_model("AddedMethod", __base__=bases, **own)
