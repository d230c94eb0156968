"""``rlcourse report``."""

from pathlib import Path
from typing import Annotated

import typer

RECIPE = "A YAML file or the name of a shipped recipe; `rlcourse train` lists them."
SETTINGS = "Settings to change; `rlcourse train RECIPE --settings` lists them."


def report(
    run: Annotated[Path, typer.Argument(help="A run's directory.")],
    out: Annotated[Path | None, typer.Option(help="The page [default: RUN/report.html].")] = None,
) -> None:
    """Write a run's report, finished or not, and say which faults its signals point to."""
    from rlcourse.reports import read_run, write_report
    from rlcourse.reports.diagnosis import diagnosis

    page = write_report(run, out)
    print(diagnosis(read_run(run)), end="\n\n")
    print(page)
