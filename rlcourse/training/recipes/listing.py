"""What ``rlcourse train`` lists: recipes, a recipe's settings (``--settings``), ``--faults``."""

import re

from rlcourse.training.faults.catalog import FAULTS
from rlcourse.training.recipes.fields import facts_of
from rlcourse.training.recipes.methods import METHODS
from rlcourse.training.recipes.recipe import SHIPPED, shipped_recipes
from rlcourse.training.recipes.settings import Recipe


def list_recipes() -> str:
    """A line a recipe: its name, and the sentence that its file begins with."""
    told = {name: about(name) for name in shipped_recipes()}
    told = dict.fromkeys(METHODS, "A method with the defaults of its settings.") | told
    width = max(map(len, told))
    lines = [f"{name:{width}}  {told[name]}" for name in sorted(told)]
    return "\n".join([*lines, "", "rlcourse train RECIPE --settings lists the settings of one."])


def about(name: str) -> str:
    """The first sentence of the comment at the head of a shipped recipe."""
    text = (SHIPPED / f"{name}.yaml").read_text(encoding="utf-8")
    comment = []
    for line in text.splitlines():
        if not line.startswith("#"):
            break
        comment.append(line.removeprefix("#").strip())
    return re.split(r"(?<!\bDr)\. (?=[A-Z])", " ".join(comment))[0].rstrip(".") + "."


def list_settings(recipe: Recipe) -> str:
    """A line a setting that the recipe's method has: name, the recipe's value, and what it is."""
    values = recipe.to_dict()
    shown = {name: "null" if value is None else str(value) for name, value in values.items()}
    width = max(map(len, shown))
    return "\n".join(
        f"{name:{width}}  {shown[name]:16}  {field.description}{_engine(field)}"
        for name, field in recipe.settings().items()
    )


def _engine(field) -> str:
    return " (not with --engine trl)" if facts_of(field)["local"] else ""


def list_faults() -> str:
    """Of each fault that can be switched on: what is wrong, what shows it, where it happened."""
    lines = []
    for name, fault in FAULTS.items():
        settings = ", ".join(f"{key}={value:g}" for key, value in fault.settings.items())
        lines += [
            f"{name}: {fault.what}" + (f" (with {settings})" if settings else ""),
            f"    shows as: {fault.signal}",
        ]
        lines += [f"    seen in: {fault.seen}"] if fault.seen else []
    return "\n".join([*lines, "", "rlcourse train grpo fault=NAME trains with one."])
