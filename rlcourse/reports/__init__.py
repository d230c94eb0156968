"""A run as a page to show: one self-contained HTML file."""

from pathlib import Path

from rlcourse.reports.html_pages import write_page
from rlcourse.reports.report import render_report
from rlcourse.reports.run_record import RunRecord, read_metrics, read_run

__all__ = ["RunRecord", "read_metrics", "read_run", "render_report", "write_report"]


def write_report(directory: str | Path, out: str | Path | None = None) -> Path:
    """Write the page of a run, finished or not, and return its path.

    `out` is by default ``report.html`` in the run's directory.

    Raises:
        UserError: the directory holds no run, or `out` is a file that rlcourse did not write.
    """
    record = read_run(directory)
    path = Path(out or Path(directory) / "report.html").expanduser()
    write_page(path, render_report(record), replace=out is None)
    return path
