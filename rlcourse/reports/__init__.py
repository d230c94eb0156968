"""Runs as pages to show: one self-contained HTML file each, or one that compares several."""

from rlcourse.reports.comparison import render_comparison
from rlcourse.reports.record import RunRecord, read_metrics, read_run
from rlcourse.reports.report import render_report
from rlcourse.reports.writing import follow_report, write_report

__all__ = [
    "RunRecord",
    "follow_report",
    "read_metrics",
    "read_run",
    "render_comparison",
    "render_report",
    "write_report",
]
