"""The leaderboard as a page for a projector, in the look of the other reports; all is escaped."""

from datetime import datetime
from pathlib import Path

from jinja2 import ChoiceLoader, FileSystemLoader

from rlcourse.courses import Course
from rlcourse.grading.ranking.standings import Leaderboard
from rlcourse.reports.html_pages import environment, write_page


def write(path: Path, board: Leaderboard, course: Course) -> None:
    """Write the page.

    Raises:
        UserError: `path` is no .html, or a file that no report of ours is.
    """
    write_page(path, render(board, course))


def render(board: Leaderboard, course: Course) -> str:
    """The page, as text."""
    shared = environment()
    beside = FileSystemLoader(Path(__file__).parent)
    made = shared.overlay(loader=ChoiceLoader([beside, *filter(None, [shared.loader])]))
    known = next((x for x in course.lessons if x.name == board.lesson), None)
    return made.get_template("leaderboard.html").render(
        title=f"Leaderboard: {known.heading if known else board.lesson}",
        board=board,
        maker="rlcourse leaderboard",
        date=f"{datetime.now():%Y-%m-%d %H:%M}",
    )
