"""``rlcourse recipes``, ``report``, ``result`` and ``diagnose``."""

from pathlib import Path
from typing import Annotated

import typer

from rlcourse.errors import UserError

RECIPE = "A YAML file or the name of a shipped recipe; `rlcourse recipes` lists them."
SETTINGS = "Settings to change; `rlcourse recipes RECIPE` lists them."


def recipes(
    recipe: Annotated[str, typer.Argument(metavar="[RECIPE]", help="One of them, or a file.")] = "",
) -> None:
    """List the recipes, or every setting of one recipe with its value and meaning."""
    from rlcourse.training.recipes.listing import list_recipes, list_settings

    print(list_settings(recipe) if recipe else list_recipes())


def report(
    runs: Annotated[list[Path], typer.Argument(metavar="RUN...", help="Run directories.")],
    out: Annotated[
        Path | None,
        typer.Option(
            help="The page [default: RUN/report.html, or comparison.html for several runs]."
        ),
    ] = None,
    follow: Annotated[
        bool, typer.Option("--follow", help="Renew the page while the run trains, for a projector.")
    ] = False,
) -> None:
    """Write a run's report, finished or not, or one page that compares several runs."""
    from rlcourse.reports import follow_report, write_report
    from rlcourse.training import default_settings

    if not follow:
        print(write_report(runs, out, default_settings()))
    elif len(runs) > 1:
        raise UserError(f"--follow takes one run, not {len(runs)}: name the one to watch")
    else:
        first = write_report(runs, out, default_settings())
        print(f"open {first}: it renews itself until the run is finished; Ctrl-C stops it here")
        follow_report(runs[0], out, default_settings())


def result(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="A finished run's directory.")],
) -> None:
    """Print a finished run as one row of a table, to send in: see course/reproduce.md."""
    from rlcourse.training.runs.row import result_row

    print(result_row(run))


def diagnose(
    run: Annotated[
        Path | None, typer.Argument(metavar="[RUN]", help="A run directory, finished or not.")
    ] = None,
    faults: Annotated[
        bool,
        typer.Option(
            "--faults", help="List the faults that `rlcourse train` can switch on, instead."
        ),
    ] = False,
) -> None:
    """Say what a run's signals point to and what they rule out; lesson 10 explains them."""
    if faults:
        from rlcourse.training.recipes.listing import list_faults

        print(list_faults())
    elif run is None:
        raise UserError("name a run directory, or list the faults with --faults")
    else:
        from rlcourse.reports.diagnosis import diagnosis
        from rlcourse.reports.record import read_run

        print(diagnosis(read_run(run)))
