"""The directory of a run before there is anything in it: may it be used, and was it begun?"""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rlcourse.errors import UserError
from rlcourse.files import TEMPORARY, write_errors_explained, write_text
from rlcourse.training.recipe import Recipe, load_recipe

# What changes speed and memory, and nothing that is computed but for rounding.
MAY_DIFFER_ON_RESUME = ("device", "checkpoint_every", "micro_batch", "gradient_checkpointing")


def open_directory(out: Path, recipe: Recipe, resume: bool) -> Path:
    """The run directory, new or to be resumed. Nothing in an existing one is changed."""
    out = out.expanduser()
    if (out / "recipe.yaml").exists():
        if not resume:
            state = "finished" if (out / "result.json").exists() else "started"
            raise UserError(
                f"{out} already holds a {state} run: add --resume to go on with it, "
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
        if contents(out):
            raise UserError(f"{out} is not empty and holds no run: choose another --out")
    write_text(out / "recipe.yaml", recipe.to_yaml())
    return out


@contextmanager
def false_start_undone(out: Path | None, stood_there: bool = True) -> Iterator[None]:
    """If what is inside fails before anything was done, `out` is as if nobody had tried.

    The model's name was wrong, or the hub away: once that is mended, the same command will do.
    """
    try:
        yield
    except UserError:
        if out is not None and contents(out) == ["recipe.yaml"]:
            (out / "recipe.yaml").unlink()
            if not stood_there:
                shutil.rmtree(out, ignore_errors=True)  # but for a lock, nothing is in it
        raise


def contents(out: Path) -> list[str]:
    """The names of what is in a run directory, locks and what a kill left aside."""
    return [path.name for path in out.iterdir() if not path.name.startswith(TEMPORARY)]
