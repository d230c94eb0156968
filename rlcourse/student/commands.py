"""``rlcourse progress``."""

from typing import Annotated

import typer


def progress(
    everything: Annotated[
        bool, typer.Option("--all", help="List the exercises of every lesson.")
    ] = False,
) -> None:
    """Show what you have done, over all lessons, and what is next."""
    from rlcourse import progress

    print(progress().text(everything))
