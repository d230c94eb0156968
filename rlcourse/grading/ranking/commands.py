"""``rlcourse leaderboard``."""

from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Annotated

from rlcourse.grading.class_page import AS_JSON, COURSE, LESSON, NAMES, OUT, show
from rlcourse.installed import needing

TEMPLATE = Path(__file__).with_name("leaderboard.html")  # for a projector; all in it is escaped


def leaderboard(
    lesson: Annotated[str, LESSON],
    out: Annotated[Path | None, OUT] = None,
    as_json: Annotated[bool, AS_JSON] = False,
    names: Annotated[bool, NAMES] = False,
    course: Annotated[Path | None, COURSE] = None,
) -> None:
    """Rank a class's trainers by the models that they train, and say which places are tied."""
    with needing("grade", "the leaderboard"):
        from rlcourse.courses import current
        from rlcourse.grading.ranking.standings import read
        from rlcourse.reports.html_pages import render
    taught = current(course)
    board = read(course or taught.directory, lesson, names)
    if not as_json:
        print(board)
    title = f"Leaderboard: {taught.lesson(board.lesson).heading}"
    whole = partial(render, TEMPLATE, title=title, board=board, maker="rlcourse leaderboard")
    show("leaderboard", board.lesson, asdict(board), whole, out, as_json, names)
