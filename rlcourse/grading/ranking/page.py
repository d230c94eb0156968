"""The leaderboard as a page for a projector, in the look of the other reports; all is escaped."""

from datetime import datetime
from pathlib import Path

from jinja2 import ChoiceLoader, FileSystemLoader

from rlcourse.courses import Course
from rlcourse.errors import UserError
from rlcourse.files import write_errors_explained, write_text
from rlcourse.grading.ranking.standings import Leaderboard
from rlcourse.reports.pages import environment
from rlcourse.reports.writing import is_ours


def write(path: Path, board: Leaderboard, course: Course) -> None:
    """Write the page.

    Raises:
        UserError: `path` is no .html, or a file that no report of ours is.
    """
    if path.suffix != ".html":
        raise UserError(f"the page cannot be called {path}: choose an --out that ends in .html")
    if path.exists() and not is_ours(path):
        raise UserError(f"{path} exists and was not made by rlcourse: choose another --out")
    text = render(board, course)
    with write_errors_explained(path):
        path.parent.mkdir(parents=True, exist_ok=True)
    write_text(path, text)


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
