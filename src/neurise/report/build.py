"""Build the report: one HTML file that requests nothing from other hosts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path

from neurise._version import __version__
from neurise.files import write_text
from neurise.report._gather import Gathered, Section, gather
from neurise.report._numbers import counted
from neurise.report._section import write_section
from neurise.report._style import STYLE

TITLE = "neurise: every figure and table"
POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'"
"""Forbids the page to ask anybody for anything, whatever is in it."""


@dataclass(frozen=True)
class Report:
    """A page, and what it holds."""

    html: str
    gathered: Gathered

    def write(self, path: Path) -> None:
        """Write the file; an older page stays whole until the new one replaces it."""
        write_text(path, self.html)


def build(paths: Sequence[str | Path], *, title: str = TITLE) -> Report:
    """Make the page of some results files."""
    gathered = gather([Path(path) for path in paths])
    body = "".join(write_section(section) for section in gathered.sections)
    html = (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f'<meta name="generator" content="neurise {__version__}"><link rel="icon" href="data:,">'
        f"<title>{escape(title)}</title><style>{STYLE}</style></head>\n<body>"
        f"<header><h1>{escape(title)}</h1>{_summary(gathered)}</header>{_contents(gathered.sections)}"
        f"<main>{body}</main></body></html>\n"
    )
    return Report(html, gathered)


def _summary(gathered: Gathered) -> str:
    cells = [section.cells for section in gathered.sections]
    done, planned = sum(pair[0] for pair in cells), sum(pair[1] for pair in cells)
    failed = sum(len(section.failed) for section in gathered.sections)
    words = f"{done:,} of {planned:,} cells are done" + (f", {failed:,} failed" if failed else "")
    parts = [
        f'<p class="about">{counted(len(gathered.sections), "experiment")}; {words}; each says what was reduced and what was '
        "not run. "
        "Points are means over trials and instances. Dashed lines in the colour of the text are there to compare with: floors, "
        "which are what a perfect model would score from as many samples, and what memorising the training rows would score. "
        "The paper prints two tables of numbers, which stand beside ours; its figures hold none.</p>"
    ]
    parts += [f'<p class="missing">{escape(told)}.</p>' for told in gathered.told]
    if gathered.unknown:
        names = "; ".join(f"{name} ({counted(count, 'row')})" for name, count in gathered.unknown.items())
        parts.append(f'<p class="missing">Left out, because this version has no such experiment: {escape(names)}.</p>')
    return "".join(parts)


def _contents(sections: Sequence[Section]) -> str:
    lines = "".join(
        f'<li><a href="#{section.anchor}">{escape(section.experiment.title)}</a> <span class="about">'
        f"{escape(section.scale)}</span></li>"
        for section in sections
    )
    return f'<nav aria-label="Contents"><h2 id="contents">Contents</h2><ol>{lines}</ol></nav>'
