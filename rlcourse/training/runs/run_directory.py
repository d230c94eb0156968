"""The directory of a run before there is anything in it: may it be used, and was it begun?"""

from pathlib import Path

from rlcourse.errors import UserError
from rlcourse.files import TEMPORARY, write_errors_explained, write_text
from rlcourse.training.recipes.recipe import load_recipe
from rlcourse.training.recipes.settings import Recipe

# What changes speed and memory, and nothing that is computed but for rounding.
MAY_DIFFER_ON_RESUME = (
    *("device", "micro_batch", "gradient_checkpointing", "checkpoint_every", "checkpoint_minutes"),
)


INNER = ("warm_start", "teacher")  # runs within a run, in its directory


def next_run_directory(name: str) -> Path:
    """The first of runs/NAME-001, runs/NAME-002, … that does not exist."""
    return next(p for n in range(1, 1000) if not (p := Path("runs", f"{name}-{n:03}")).exists())


def open_directory(out: Path, recipe: Recipe, resume: bool) -> Path:
    """The run directory, new or to be resumed. Nothing in an existing one is changed."""
    out = out.expanduser()
    if (out / "recipe.yaml").exists():
        if not resume:
            state = "finished" if (out / "result.json").exists() else "started"
            raise UserError(
                f"{out} already holds a {state} run: add --resume to continue it, "
                "or choose another --out"
            )
        earlier, now = load_recipe(out / "recipe.yaml").to_dict(), recipe.to_dict()
        for key in now:
            if now[key] != earlier[key] and key not in MAY_DIFFER_ON_RESUME:
                raise UserError(
                    f"{out} was started with {key}={earlier[key]}, not {now[key]}: "
                    "resume it with the same recipe, or choose another --out"
                )
        return out
    with write_errors_explained(out):
        out.mkdir(parents=True, exist_ok=True)
        # Locks, and what a kill left of runs that come before this one.
        others = [p for p in out.iterdir() if not p.name.startswith((TEMPORARY, *INNER))]
        if others:
            raise UserError(f"{out} is not empty and holds no run: choose another --out")
    return out


def begin(out: Path, recipe: Recipe) -> None:
    """Write the recipe, once there is a model and a task. After a wrong model name, or a hub that
    did not answer, the same command works again."""
    if not (out / "recipe.yaml").exists():
        write_text(out / "recipe.yaml", recipe.to_yaml())
