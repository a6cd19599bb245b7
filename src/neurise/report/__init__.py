"""Results as one page: every figure and table of every experiment in some results files, in a single HTML file."""

from __future__ import annotations

from neurise.report.build import Report, build

__all__ = ["Report", "build"]
