"""What ``rlcourse train`` lists: recipes, and with ``--faults`` the faults."""

import re

from rlcourse.training.faults.catalog import FAULTS
from rlcourse.training.recipes.methods import METHODS
from rlcourse.training.recipes.recipe import SHIPPED, shipped_recipes


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
