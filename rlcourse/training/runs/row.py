"""A finished run as one row of a table: ``rlcourse report RUN --row``, for course/reproduce.md.

A run's directory does not say which shipped recipe it began with, so the nearest one is named,
with the settings that differ. Those that change no result are left out.
"""

import json
from pathlib import Path

from rlcourse.errors import UserError
from rlcourse.training.recipes.recipe import load_recipe, shipped_recipes
from rlcourse.training.recipes.settings import Recipe

HEAD = (
    "recipe",
    "seed",
    "accuracy before → after",
    "format reward before → after",
    "greedy before → after",
    "problems x samples",
    "hardware and versions",
)
IRRELEVANT = ("seed", "data", "device", "checkpoint_every", "checkpoint_minutes")
PACKAGES = ("rlcourse", "torch", "transformers", "trl")


def result_row(directory: Path) -> str:
    """The row, under its head, in Markdown.

    Raises:
        UserError: there is no finished run, or one without evaluations before and after training.
    """
    try:
        found = json.loads((directory / "result.json").read_text("utf-8"))
    except FileNotFoundError:
        raise UserError(
            f"{directory} holds no finished run: name the directory that --out was given"
        ) from None
    before, after = found.get("before"), found.get("after")
    if not (before and after):
        raise UserError(
            f"{directory} has no evaluations before and after training: train with eval_problems "
            "of at least 1"
        )
    recipe = load_recipe(directory / "recipe.yaml")
    cells = (
        told(recipe),
        recipe.seed,
        *(
            change(before[key], after[key])
            for key in ("sampled_accuracy", "sampled_format_reward", "accuracy")
        ),
        f"{after['problems']:,} x {after['samples']}",
        machine(found),
    )
    return "\n".join(map(line, (HEAD, ["---"] * len(HEAD), cells)))


def line(cells) -> str:
    """Cells as a line of a table."""
    return f"| {' | '.join(str(cell).replace('|', '/') for cell in cells)} |"


def change(before: dict | None, after: dict | None) -> str:
    """``.293 [.280, .306] → .436 [.420, .450]``; a dash for what was not measured."""
    if not (before and after):
        return "–"
    return " → ".join("{value:.4f} [{low:.4f}, {high:.4f}]".format(**x) for x in (before, after))


def told(recipe: Recipe) -> str:
    """The nearest shipped recipe, and what differs from it."""
    candidates = [(name, load_recipe(name)) for name in shipped_recipes()]
    own = [(n, r) for n, r in candidates if r.method is recipe.method]
    name, nearest = min(own, key=lambda found: len(differing(recipe, found[1])))
    return " ".join([f"`{name}`", *(f"`{text}`" for text in differing(recipe, nearest))])


def differing(recipe: Recipe, other: Recipe) -> list[str]:
    """``KEY=VALUE`` of each setting that may matter and is another in the two recipes."""
    ours, theirs = recipe.to_dict(), other.to_dict()
    keys = [key for key in ours if key not in IRRELEVANT and ours[key] != theirs.get(key)]
    return [f"{key}={short(ours[key])}" for key in keys]


def short(value) -> str:
    """A value on one line; of a directory its name alone, because the path is nobody else's."""
    if isinstance(value, str) and Path(value).is_absolute():
        return Path(value).name if Path(value).name != "policy" else Path(value).parent.name
    return value if isinstance(value, str) and "\n" not in value else json.dumps(value)


def machine(found: dict) -> str:
    """The device and the versions that a result was computed with."""
    hardware, versions = found["hardware"], found["versions"]
    named = [f"{name} {versions[name]}" for name in PACKAGES if name in versions]
    return ", ".join([str(hardware.get("gpu") or hardware["device"]), *named])
