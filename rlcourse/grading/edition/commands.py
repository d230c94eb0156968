"""``rlcourse student-edition``."""

from pathlib import Path
from typing import Annotated

import typer

from rlcourse.installed import needing


def student_edition(
    out: Annotated[
        Path, typer.Option(metavar="DIRECTORY", help="Where the wheel and the notebooks go.")
    ] = Path("student-edition"),
    opened: Annotated[
        list[str] | None,
        typer.Option(
            "--open",
            metavar="LESSON",
            help="A lesson whose answers students may see before its due date; can be repeated.",
        ),
    ] = None,
    course: Annotated[
        Path | None,
        typer.Option(help="Directory whose extensions.json counts [default: the course's]."),
    ] = None,
) -> None:
    """Make a wheel and notebooks without the right answers of lessons that are not due.

    That takes about two minutes. A lesson for which somebody has more time stays closed until then.
    """
    with needing("grade", "the students' edition"):
        from rlcourse.grading.edition.building import write_edition
    print(write_edition(out, opened or (), progress=True, gradebook=course))
