"""What ``rlcourse insight`` and ``leaderboard`` have in common: their options, a page or JSON."""

import json
from collections.abc import Callable
from pathlib import Path

import typer

from rlcourse.errors import UserError

LESSON = typer.Argument(help="Number or name of the lesson.")
OUT = typer.Option(help="The page [default: COMMAND-LESSON.html, or COMMAND-LESSON-names.html].")
AS_JSON = typer.Option("--json", help="Print it for machines instead of a page.")
NAMES = typer.Option("--names", help="Say who; without it, nobody.")
COURSE = typer.Option("--course", help="Directory of the gradebook [default: the course's].")


def show(
    command: str,
    lesson: str,
    found: dict,
    page: Callable[[], str],
    out: Path | None,
    as_json: bool,
    names: bool,
) -> None:
    """Print what was `found` for machines, or write its page, which only its owner can read if it
    has names, and print where."""
    from rlcourse.reports.html_pages import write_page

    if out and as_json:
        raise UserError("--out is for the page: --json prints, so use > FILE")
    if as_json:
        print(json.dumps(found, indent=2))
        return
    path = out or Path(f"{command}-{lesson}{'-names' * names}.html")  # beside the class's own
    write_page(path, page(), mode=0o600 if names else 0o666)
    print(path)
