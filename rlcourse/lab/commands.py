"""``rlcourse lab``."""

from pathlib import Path
from typing import Annotated

import typer


def lab(
    lesson: Annotated[str, typer.Argument(help="Number or name of the lesson to open.")] = "",
    directory: Annotated[
        Path | None,
        typer.Option("--dir", help="Folder of your copy [default: my-lessons, or COURSE-lessons]."),
    ] = None,
    browser: Annotated[bool, typer.Option(help="Open a browser window.")] = True,
    port: Annotated[
        int, typer.Option(help="Port to listen on; if it is taken, the next free one.")
    ] = 8888,
    copy_only: Annotated[
        bool, typer.Option("--copy-only", help="Only copy the lessons; do not open JupyterLab.")
    ] = False,
) -> None:
    """Open JupyterLab on your copy of the lessons.

    The copy is made if there is none; your changes are never overwritten.
    """
    from rlcourse.courses import current
    from rlcourse.lab.jupyter import open_lab
    from rlcourse.lab.lessons import copy_lessons, default_directory

    course = current()
    chosen = course.lesson(lesson).name if lesson else course.lessons[0].name
    copied = copy_lessons(directory or default_directory())
    print(copied)
    if copy_only:
        return
    print("JupyterLab is opening them; press Ctrl-C here to end it.", flush=True)
    raise typer.Exit(open_lab(copied.directory, chosen, browser, port))
