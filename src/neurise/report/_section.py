"""One experiment on the page: what it is, its figures, its tables, its samples, and how all of it was made."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from pathlib import Path

from neurise.experiments import Figure
from neurise.report._budgets import budgets
from neurise.report._downloads import csv_link, svg_link
from neurise.report._gather import Section
from neurise.report._numbers import counted
from neurise.report._pictures import grids
from neurise.report._plot import hidden, plot
from neurise.report._points import OF_LAW, Panel, csv_rows, few, panels
from neurise.report._table import tables
from neurise.report.left_out import left_out

MOST_FAILURES = 20
"""So many failed cells are listed one by one."""


def write_section(section: Section) -> str:
    """Write an experiment at one scale."""
    experiment, anchor = section.experiment, section.anchor
    figures = [_figure(section, figure) for figure in experiment.figures]
    written = [tables(experiment, table, section.done, anchor) for table in experiment.tables]
    samples = [grids(experiment, grid, section.done, anchor) for grid in experiment.grids]
    notes = "".join(f"<li>{escape(note)}</li>" for note in experiment.notes)
    parts = [
        f'<h2 id="{anchor}-title">{escape(experiment.title)}</h2>',
        f'<p class="about">{escape(experiment.reproduces)}. Scale: {escape(section.scale)}.</p>',
        _reduced(section),
        f'<div class="figures">{"".join(figures)}</div>',
        *written,
        budgets(experiment, section.done),
        *samples,
        f'<h3>Notes</h3><ul class="notes">{notes}</ul>' if notes else "",
        _made(section),
        _failures(section),
    ]
    return f'<section class="experiment" id="{anchor}" aria-labelledby="{anchor}-title">{"".join(parts)}</section>'


def _figure(section: Section, figure: Figure) -> str:
    drawn = panels(section.experiment, figure, section.done)
    if not drawn:
        return ""
    name = f"{section.anchor}-{figure.name}"
    shown, links = [], []
    for number, panel in enumerate(drawn):
        svg = plot(figure, panel)
        label = f"<figcaption>{escape(panel.label)}</figcaption>" if panel.label else ""
        shown.append(f'<figure class="panel">{label}{svg}</figure>')
        ending = f"-{number + 1}" if len(drawn) > 1 else ""
        links.append(svg_link(f"{name}{ending}", svg, figure.title, panel.label))
    links.append(csv_link(name, csv_rows(figure, drawn), figure.title))
    missing = sum(hidden(figure, panel) for panel in drawn)
    words = [figure.caption] if figure.caption else []
    if any(line.label.endswith(OF_LAW) for panel in drawn for line in panel.series):
        words.append("Lines of a law compare the model's probabilities, and have no floor; others compare samples.")
    if left := few(section.experiment, figure, section.done):
        words.append(f"Not drawn, for they have less than half of the cells: {', '.join(left)}.")
    words += [f"Bars: one standard deviation over {over}." for over in _bars(drawn)]
    words += [f"Not above zero, and so not on a logarithmic axis: {counted(missing, 'point')}."] if missing else []
    kind = "figure many" if len(drawn) > 1 else "figure"
    return (
        f'<section class="{kind}" id="{name}"><h3>{escape(figure.title)}</h3><div class="panels">{"".join(shown)}</div>'
        f'<p class="about">{escape(" ".join(words))}</p>'
        f'<p class="downloads">Download: {", ".join(links)}</p></section>'
    )


def _bars(drawn: Sequence[Panel]) -> list[str]:
    """Say what the bars of a figure vary over; nothing where it has none."""
    points = [point for panel in drawn for line in panel.series for point in line.points if point.spread]
    names = {False: "trials of one instance", True: "instances, of which each has one trial"}
    return [name for over, name in names.items() if any(point.over_instances is over for point in points)]


def _reduced(section: Section) -> str:
    reduced = section.experiment.reduced(section.scale)
    done, planned = section.cells
    parts = []
    if reduced:
        parts.append(f'<p class="reduced">Reduced against the paper: {escape(reduced)}.</p>')
    if absent := left_out(section):
        parts.append(f'<p class="missing">Not run here: {escape("; ".join(absent))}.</p>')
    if done < planned:
        failed = f"; {len(section.failed):,} failed" if section.failed else ""
        parts.append(f'<p class="missing">Missing: {planned - done:,} of {planned:,} cells{failed}.</p>')
    return "".join(parts)


def _made(section: Section) -> str:
    done, planned = section.cells
    seconds = sum(float(row.get("seconds") or 0) for row in section.done)
    facts = {
        "command": _commands(section),
        "cells": f"{done:,} of {planned:,}, {_duration(seconds)} of computing",
        "versions": "<br>".join(map(escape, section.versions)),
        "code": escape(", ".join(section.codes)),
        "machines": "<br>".join(map(escape, section.machines)),
        "made": escape(section.days),
        "rows from": escape(", ".join(Path(file).name for file in section.files)),
    }
    shown = "".join(f"<dt>{name}</dt><dd>{text}</dd>" for name, text in facts.items() if text)
    return f'<h3>How it was made</h3><dl class="made">{shown}</dl>'


def _commands(section: Section) -> str:
    """Write every command that made rows here; for rows that do not say, one that makes such rows."""
    parts = []
    for command, cells in section.commands.items():
        share = [counted(cells, "cell")] if len(section.commands) > 1 else []
        words = ", ".join(share if command else [*share, "not recorded; put together from the rows"])
        parts.append(f"<p>{words}:</p>" if words else "")
        parts.append(f"<pre><code>{escape(command or section.command)}</code></pre>")
    return "".join(parts)


def _duration(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"


def _failures(section: Section) -> str:
    if not section.failed:
        return ""
    lines = []
    for row in section.failed[:MOST_FAILURES]:
        given = ", ".join(f"{name}={value}" for name, value in {**row["parameters"], "seed": row["seed"]}.items())
        lines.append(f"<li><code>{escape(str(row.get('error')))}</code><br>{escape(given)}</li>")
    more = len(section.failed) - MOST_FAILURES
    lines += [f"<li>and {more:,} more</li>"] if more > 0 else []
    return f'<h3>Cells that failed</h3><ul class="failed">{"".join(lines)}</ul>'
