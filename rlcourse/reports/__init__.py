"""Runs as pages to show: one self-contained HTML file each, or one that compares several."""

from collections.abc import Iterable
from pathlib import Path

from rlcourse.reports.comparison import render_comparison
from rlcourse.reports.html_pages import write_page
from rlcourse.reports.report import render_report
from rlcourse.reports.run_record import RunRecord, read_metrics, read_run

__all__ = [
    "RunRecord",
    "read_metrics",
    "read_run",
    "render_comparison",
    "render_report",
    "write_report",
]


def write_report(
    directories: Iterable[str | Path],
    out: str | Path | None = None,
    defaults: dict | None = None,
) -> Path:
    """Write the page of one run, or the page that compares several, and return its path.

    Args:
        directories: of runs, finished or not; one that is given twice counts once.
        out: by default ``report.html`` in the run's directory, or ``comparison.html`` here.
        defaults: see ``render_report``.

    Raises:
        UserError: a directory holds no run, or `out` is a file that rlcourse did not write.
    """
    different = {Path(d).expanduser().resolve(): Path(d).expanduser() for d in directories}
    records = [read_run(directory) for directory in different.values()]
    if len(records) == 1:
        path = Path(out or next(iter(different.values())) / "report.html")
        page = render_report(records[0], defaults)
    else:
        path = Path(out or "comparison.html")
        page = render_comparison(records)
    path = path.expanduser()
    write_page(path, page, replace=out is None and len(records) == 1)
    return path
