"""``rlcourse gradescope``."""

from pathlib import Path
from typing import Annotated

import typer

from rlcourse.errors import UserError
from rlcourse.installed import needing


def gradescope(
    lesson: Annotated[str, typer.Argument(help="Number or name of the lesson.")],
    out: Annotated[Path, typer.Option(help="The archive to write.")] = Path("autograder.zip"),
    course: Annotated[
        Path | None, typer.Option(help="Directory of the gradebook [default: the course's].")
    ] = None,
) -> None:
    """Write a lesson's autograder for Gradescope, as the archive to upload there."""
    with needing("grade", "grading"):
        from rlcourse.grading.gradescope.archive import write_archive
    if not out.parent.is_dir():
        raise UserError(f"there is no directory {out.parent} for {out.name}: make it first")
    settings = write_archive(lesson, course, out)
    points, by_hand = (sum(settings[kind].values()) for kind in ("exercises", "questions"))
    print(f"{out}: {settings['lesson']}, {points:g} points by the autograder", end="")
    print(f", {by_hand:g} by hand" if by_hand else "")
    print("It holds the secret from which cases are drawn, and right answers: keep it to yourself.")
