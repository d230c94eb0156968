"""``rlcourse new-course``."""

from pathlib import Path
from typing import Annotated

import typer


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
