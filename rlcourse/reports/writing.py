"""Pages into files."""

import time
from collections.abc import Callable, Iterable
from pathlib import Path

from rlcourse.errors import UserError
from rlcourse.files import write_errors_explained, write_text
from rlcourse.reports.comparison import render_comparison
from rlcourse.reports.record import read_run
from rlcourse.reports.report import render_report

FOLLOWED = 10  # seconds between two pages of a run that is followed
OURS = '<meta name="generator" content="rlcourse report">'


def write_report(
    directories: Iterable[str | Path],
    out: str | Path | None = None,
    defaults: dict | None = None,
    renewed: int | None = None,
) -> Path:
    """Write the page of one run, or the page that compares several, and return its path.

    Args:
        directories: of runs, finished or not; one that is given twice counts once.
        out: by default ``report.html`` in the run's directory, or ``comparison.html`` here.
        defaults, renewed: see ``render_report``.

    Raises:
        UserError: a directory holds no run, or `out` is a file that rlcourse did not write.
    """
    different = {Path(d).expanduser().resolve(): Path(d).expanduser() for d in directories}
    records = [read_run(directory) for directory in different.values()]
    if len(records) == 1:
        path = Path(out or next(iter(different.values())) / "report.html")
        page = render_report(records[0], defaults, renewed)
    else:
        path = Path(out or "comparison.html")
        page = render_comparison(records)
    path = path.expanduser()
    write_page(path, page, replace=out is None and len(records) == 1)
    return path


def write_page(path: Path, page: str, replace: bool = False) -> None:
    """Write a page that carries our mark; `replace` puts it in the place of any other file, too.

    Raises:
        UserError: `path` is no .html, or a file that rlcourse did not write.
    """
    if path.suffix != ".html":
        raise UserError(f"the page cannot be named {path}: choose an --out that ends in .html")
    if path.exists() and not replace and not is_ours(path):
        raise UserError(f"{path} exists and was not made by rlcourse: choose another --out")
    with write_errors_explained(path):
        path.parent.mkdir(parents=True, exist_ok=True)
    write_text(path, page)


def follow_report(
    directory: str | Path,
    out: str | Path | None = None,
    defaults: dict | None = None,
    seconds: int = FOLLOWED,
    sleep: Callable[[float], None] = time.sleep,
) -> Path:
    """Write a run's page again and again until the run is finished, and return its path.

    An open page loads itself anew each time, for a projector. However this ends, the page that
    stays behind no longer does.

    Raises:
        UserError: as ``write_report``.
    """
    try:
        while read_run(directory).state() is not None:
            write_report([directory], out, defaults, renewed=seconds)
            sleep(seconds)
    finally:
        path = write_report([directory], out, defaults)
    return path


def is_ours(path: Path) -> bool:
    """Whether a file is a page that one of our commands has made."""
    try:
        with path.open(encoding="utf-8", errors="replace") as file:
            return OURS in file.read(2000)
    except OSError:
        return False
