"""``rlcourse report``."""

from pathlib import Path
from typing import Annotated

import typer

from rlcourse.errors import UserError

RECIPE = "A YAML file or the name of a shipped recipe; `rlcourse train` lists them."
SETTINGS = "Settings to change; `rlcourse train RECIPE --settings` lists them."


def report(
    runs: Annotated[list[Path], typer.Argument(metavar="RUN...", help="Run directories.")],
    out: Annotated[
        Path | None,
        typer.Option(
            help="The page [default: RUN/report.html, or comparison.html for several runs]."
        ),
    ] = None,
    row: Annotated[
        bool,
        typer.Option(
            "--row", help="Only print a finished run as a table's row: see course/reproduce.md."
        ),
    ] = False,
) -> None:
    """Write a run's report, finished or not, and say what its signals point to (lesson 10).

    Several runs get one page that compares them.
    """
    if row:
        if len(runs) > 1:
            raise UserError(f"--row takes one run, not {len(runs)}: name only that one")
        from rlcourse.training.runs.row import result_row

        print(result_row(runs[0]))
        return
    from rlcourse.reports import read_run, write_report
    from rlcourse.reports.diagnosis import diagnosis
    from rlcourse.training import default_settings

    page = write_report(runs, out, default_settings())
    if len(runs) == 1:
        print(diagnosis(read_run(runs[0])), end="\n\n")
    print(page)
