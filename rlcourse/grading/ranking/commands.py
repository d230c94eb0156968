"""``rlcourse leaderboard``."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from rlcourse.errors import UserError
from rlcourse.installed import needing

TEMPLATE = Path(__file__).with_name("leaderboard.html")  # for a projector; all in it is escaped


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
        bool,
        typer.Option(
            "--names", help="Name the students; without this option, everybody is a letter."
        ),
    ] = False,
    course: Annotated[
        Path | None,
        typer.Option("--course", help="Directory of the gradebook [default: the course's]."),
    ] = None,
) -> None:
    """Rank a class's trainers by the models that they train, and say which places are tied."""
    if out and as_json:
        raise UserError("--out is for the page: --json prints, so use > FILE")
    with needing("grade", "the leaderboard"):
        from rlcourse.courses import current
        from rlcourse.grading.ranking.standings import read
        from rlcourse.reports.html_pages import write_page
    taught = current(course)
    board = read(course or taught.directory, lesson, names)
    if as_json:
        print(json.dumps(asdict(board), indent=2))
        return
    path = out or Path(f"leaderboard-{board.lesson}{'-names' * names}.html")
    write_page(path, page(board, taught), mode=0o600 if names else 0o666)
    print(board)
    print(path)


def page(board, taught) -> str:
    """The page of a ``Leaderboard``, as text."""
    from rlcourse.reports.html_pages import render

    return render(
        TEMPLATE,
        title=f"Leaderboard: {taught.lesson(board.lesson).heading}",
        board=board,
        maker="rlcourse leaderboard",
    )
