"""``rlcourse new-course`` and ``rlcourse site``."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Annotated

import typer

from rlcourse.courses.finding import VARIABLE, current, shipped_directory
from rlcourse.installed import needing


def new_course(
    directory: Annotated[
        Path, typer.Argument(metavar="DIR", help="A new folder; its name is the course's.")
    ],
) -> None:
    """Start a course of your own, with lessons of ours that you choose and your own exercises."""
    from rlcourse.courses.creating import new_course

    made = new_course(directory)
    print(f"{made} is a course with one lesson of its own and two of ours; its README says more:")
    print(f"    cd {directory}\n    rlcourse build 01 --execute")
    print("    rlcourse prove explained_variance")


def site() -> None:
    """Write the course as web pages, to build/site/html; its solutions must have been built."""
    with needing("site", "writing web pages"):
        import myst_parser  # noqa: F401
        import sphinx  # noqa: F401
    course, sources, out = current(), shipped_directory() / "site", Path("build/site")
    environment = {**os.environ, VARIABLE: str(course.directory)}
    pages, extra, html = (str(out / name) for name in ("pages", "extra", "html"))
    for words in (
        [str(sources / "pages.py"), pages, extra],
        ["-m", "sphinx", "-q", "-W", "--keep-going", "-c", str(sources), pages, html],
    ):
        status = subprocess.run([sys.executable, *words], env=environment).returncode
        if status:
            raise typer.Exit(status)
    print(f"open {out / 'html' / 'index.html'}")
