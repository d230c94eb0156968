"""Recipes as files and on the command line.

A recipe is a YAML file, behind which stands its algorithm's class of settings. Every key can be
overridden on the command line (``lr=1e-4``, ``rewards.format=0.2``).
"""

import os
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import yaml

from rlcourse.errors import UserError
from rlcourse.training.recipes.methods import METHODS
from rlcourse.training.recipes.settings import (
    Recipe,
    default_settings,
    refuse_misspelled,
    refuse_unknown,
)
from rlcourse.training.recipes.values import nearest

# What a warm start takes over from the recipe that names it; all else is its own.
WITH_WARM_START = (
    *("policy", "task", "data", "task_options", "system", "template", "extract", "seed", "dtype"),
    *("device", "micro_batch", "gradient_checkpointing", "lora"),
)
SHIPPED = Path(__file__).parent
POLICY_VARIABLE = "RLCOURSE_POLICY"


def load_recipe(name_or_path: str | Path, **overrides) -> Recipe:
    """The recipe of that name (``sft``, ``grpo``, …) or file, with some values overridden.

    A method without a recipe of its name has the defaults of its settings. Where nothing says which
    policy, it is the environment's ``RLCOURSE_POLICY``, a Hugging Face model's name or path, or
    else the embedded one.

    Raises:
        UserError: no such recipe, unreadable YAML, a wrong key or value, or another method's key.
    """
    name = str(name_or_path)
    if name in METHODS and name not in shipped_recipes():
        values, place = {"algorithm": name}, ""
    else:
        path = _recipe_path(name)
        values, place = _read(path), str(path)
    if chosen := os.environ.get(POLICY_VARIABLE):
        values = {"policy": chosen} | values
    refuse_unknown(values, place)
    recipe = Recipe.of(values)
    return recipe.but(**overrides) if overrides else recipe


def _read(path: Path) -> dict:
    try:
        values = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"the recipe {path} cannot be read: {error}") from None
    except yaml.YAMLError as error:
        raise UserError(
            f"the recipe {path} is not valid YAML: {' '.join(str(error).split())}"
        ) from None
    if not isinstance(values, dict):
        raise UserError(f"the recipe {path} must hold lines such as 'algorithm: grpo'")
    return {"algorithm": "grpo"} | values


def warm_start_of(recipe: Recipe) -> Recipe | None:
    """The recipe that is run first, with this one's policy, task and precision; or None."""
    if recipe.warm_start is None:
        return None
    first = load_recipe(recipe.warm_start)
    shared = {k: getattr(recipe, k) for k in WITH_WARM_START if k in first.settings()}
    return first.but(eval_problems=0, **shared)


def teacher_recipe(recipe: Recipe) -> Recipe | None:
    """The recipe that makes the teacher of this one; None where the teacher is a model.

    Raises:
        UserError: the teacher would need a teacher that needs this one.
    """
    name = recipe.teacher
    if name not in shipped_recipes() and Path(name).suffix not in (".yaml", ".yml"):
        return None
    first = load_recipe(name)
    if first.method.taught or not first.method.trains_policy:
        raise UserError(f"teacher={name} makes no teacher: name a recipe such as grpo, or a model")
    shared = {k: getattr(recipe, k) for k in WITH_WARM_START if k in first.settings()}
    return first.but(eval_problems=0, **shared)


def parse_overrides(assignments: Iterable[str]) -> dict:
    """``["lr=1e-4", "rewards.format=0.2"]`` → ``{"lr": 1e-4, "rewards": {"format": 0.2}}``."""
    values: dict = {}
    usual = default_settings()
    for key, value in map(assigned, assignments):
        key, _, inner = key.partition(".")
        refuse_misspelled(key)
        if inner and not isinstance(usual.get(key), dict):
            raise UserError(f"'{key}' holds one value: write {key}={value}")
        if inner:
            values.setdefault(key, {})[inner] = value
        else:
            values[key] = value
    return values


def assigned(text: str) -> tuple[str, Any]:
    """``"lr=1e-4"`` → ``("lr", 1e-4)``, the value read as YAML."""
    key, equals, value = text.partition("=")
    if not equals or not key.strip():
        raise UserError(f"'{text}' sets nothing: write key=value, for example lr=1e-4")
    if re.match(r"\s*(#|[^\s\"'\[{]+\s+\S)", value):
        return key.strip(), value.strip()  # a sentence: its # begins no comment, its colon no list
    try:
        return key.strip(), yaml.safe_load(value)
    except yaml.YAMLError:
        raise UserError(f"the value in '{text}' is not valid YAML") from None


def shipped_recipes() -> list[str]:
    """Names of the recipes that come with the package."""
    return sorted(path.stem for path in SHIPPED.glob("*.yaml"))


def _recipe_path(name: str) -> Path:
    shipped = SHIPPED / f"{name}.yaml"
    if "/" not in name and shipped.is_file():
        return shipped
    path = Path(name).expanduser()
    if path.is_file():
        return path
    if path.suffix in (".yaml", ".yml") or "/" in name:
        raise UserError(f"there is no recipe file {path}")
    others = f": recipes are {', '.join(shipped_recipes())}, or the path of a YAML file"
    raise UserError(f"there is no recipe '{name}'{nearest(name, shipped_recipes()) or others}")
