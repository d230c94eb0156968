"""Runs as pages to show: one self-contained HTML file each."""

from rlcourse.reports.report import render_report

__all__ = ["render_report"]
