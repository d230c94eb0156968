"""``rlcourse train``, by either engine."""

import re
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from rlcourse.errors import UserError
from rlcourse.training.commands import RECIPE, SETTINGS


class Engine(StrEnum):
    """Whose loop trains."""

    local = "local"
    trl = "trl"


class Tracker(StrEnum):
    """Where a run's curves are shown besides TensorBoard."""

    trackio = "trackio"
    wandb = "wandb"


def train(
    recipe: Annotated[str, typer.Argument(help=RECIPE)] = "",
    settings: Annotated[
        list[str] | None, typer.Argument(metavar="[KEY=VALUE]...", help=SETTINGS)
    ] = None,
    list_settings: Annotated[
        bool, typer.Option("--settings", help="List the recipe's settings instead.")
    ] = False,
    faults: Annotated[
        bool, typer.Option("--faults", help="List the faults that fault=NAME switches on, instead.")
    ] = False,
    out: Annotated[
        Path | None, typer.Option(help="Run directory [default: the next in runs/].")
    ] = None,
    resume: Annotated[bool, typer.Option(help="Continue the run in --out.")] = False,
    engine: Annotated[
        Engine, typer.Option(help="trl: several GPUs or machines, see course/scaling.md.")
    ] = Engine.local,
    tracker: Annotated[
        Tracker | None, typer.Option(help="Send every step's metrics there as well.")
    ] = None,
    trl: Annotated[
        list[str] | None, typer.Option(metavar="KEY=VALUE", help="Setting of TRL's, for trl.")
    ] = None,
) -> None:
    """Train a policy by a recipe; without one, list the recipes.

    Any of a recipe's settings can be given as KEY=VALUE. The run directory gets metrics.jsonl,
    result.json, report.html, checkpoints/ and policy/.
    """
    from rlcourse import training, trl_engine
    from rlcourse.training.recipes import listing
    from rlcourse.training.runs.run_directory import next_run_directory

    def chosen():
        if resume and out is None:
            raise UserError("--resume needs --out, the directory of the run to continue")
        return training.load_recipe(recipe, **training.parse_overrides(settings or []))

    if faults or not recipe:
        print(listing.list_faults() if faults else listing.list_recipes())
        return
    if list_settings:
        print(chosen().help())
        return
    place = out or next_run_directory(re.sub(r"\.ya?ml$", "", Path(recipe).name))
    if engine is Engine.trl and tracker:
        raise UserError(f"--tracker is for the local engine: use --trl report_to={tracker.value}")
    if engine is Engine.trl:
        run = trl_engine.train(chosen, place, settings=trl or [], resume=resume)
    elif trl:
        raise UserError("--trl sets what only TRL has: add --engine trl")
    else:
        trl_engine.require_local(place)
        loaded = chosen()  # a misspelled recipe need not wait for torch
        run = training.train(loaded, out=place, resume=resume, tracker=tracker)
    if run is not None:  # rank zero's, where several processes train
        print(run.summary())
