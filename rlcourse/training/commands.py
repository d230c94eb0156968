"""The command that reads a run for faults."""

from pathlib import Path
from typing import Annotated

import typer

from rlcourse.errors import UserError


def diagnose(
    run: Annotated[
        Path | None, typer.Argument(metavar="[RUN]", help="A run directory, finished or not.")
    ] = None,
    faults: Annotated[
        bool, typer.Option("--faults", help="Instead, list those that train can switch on.")
    ] = False,
) -> None:
    """Say what a run's signals point to, and what they exclude; lesson 10 explains them."""
    if faults:
        from rlcourse.training.listing import list_faults

        print(list_faults())
    elif run is None:
        raise UserError("name a run directory, or list the faults with --faults")
    else:
        from rlcourse.reports.diagnosis import diagnosis
        from rlcourse.reports.record import read_run

        print(diagnosis(read_run(run)))
