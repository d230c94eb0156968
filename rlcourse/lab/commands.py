"""``rlcourse lab`` and ``rlcourse lessons``."""

from pathlib import Path
from typing import Annotated

import typer

from rlcourse.lab.jupyter import open_lab
from rlcourse.lab.lessons import chosen_lesson, copy_lessons, default_directory


def lab(
    lesson: Annotated[str, typer.Argument(help="Number or name of the lesson to open.")] = "",
    directory: Annotated[
        Path | None,
        typer.Option("--dir", help="Your copy [default: my-lessons, or ./rlcourse-lessons]."),
    ] = None,
    browser: Annotated[bool, typer.Option(help="Open a browser window.")] = True,
    port: Annotated[
        int, typer.Option(help="Port to listen on; the next free one is taken.")
    ] = 8888,
) -> None:
    """Open JupyterLab on your copy of the lessons.

    The copy is made where there is none; what you changed in it is never written over.
    """
    chosen = chosen_lesson(lesson)
    copied = copy_lessons(directory or default_directory())
    print(f"{copied}\nJupyterLab opens on them; Ctrl-C ends it.", flush=True)
    raise typer.Exit(open_lab(copied.directory, chosen, browser, port))


def lessons(
    directory: Annotated[
        Path | None,
        typer.Argument(metavar="[DIR]", help="By default my-lessons, or ./rlcourse-lessons."),
    ] = None,
    newer: Annotated[
        bool, typer.Option("--newer", help="Put newer versions beside lessons that you changed.")
    ] = False,
) -> None:
    """Copy the lessons to a folder; what you changed there is never written over."""
    print(copy_lessons(directory or default_directory(), newer))
