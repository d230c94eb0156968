"""Runs as pages to show: one self-contained HTML file each, or one that compares several."""

from rlcourse.reports.record import RunRecord, read_run
from rlcourse.reports.report import render_report

__all__ = ["RunRecord", "read_run", "render_report"]
