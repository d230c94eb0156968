"""``rlcourse leaderboard``."""

import json
from pathlib import Path
from typing import Annotated

import typer

from rlcourse.errors import UserError
from rlcourse.installed import needing


def leaderboard(
    lesson: Annotated[str, typer.Argument(help="Number or name of the lesson.")],
    out: Annotated[
        Path | None,
        typer.Option(help="The page [default: leaderboard-LESSON.html, or …-LESSON-names.html]."),
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print it for machines instead of a page.")
    ] = False,
    names: Annotated[
        bool, typer.Option("--names", help="Say who; without it, everybody is a letter.")
    ] = False,
    aliases: Annotated[
        Path | None,
        typer.Option(metavar="TABLE", help="What students are called here: student,alias in CSV."),
    ] = None,
    course: Annotated[
        Path | None,
        typer.Option("--course", help="Directory of the gradebook [default: the course's]."),
    ] = None,
) -> None:
    """Rank a class by what its trainers have trained, and say which places mean nothing."""
    if out and as_json:
        raise UserError("--out is for the page: --json prints, so use > FILE")
    with needing("grade", "the leaderboard"):
        from rlcourse.courses import current
        from rlcourse.grading.ranking import page
        from rlcourse.grading.ranking.standings import read, read_aliases
    taught = current(course)
    called = read_aliases(aliases) if aliases else None
    board = read(course or taught.directory, lesson, names, called)
    if as_json:
        print(json.dumps(board.as_json(), indent=2))
        return
    ending = "-names" if names else ""  # beside the page that a class may see
    path = out or Path(f"leaderboard-{board.lesson}{ending}.html")
    page.write(path, board, taught)
    print(board)
    print(path)
