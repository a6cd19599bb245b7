"""What notebooks show of an object: a small table in HTML, without scripts, in the colours of the page around it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape

# Only greys that are see-through: the text keeps the colour of the notebook, be that dark or light.
LINE = "1px solid rgba(128, 128, 128, 0.35)"
STYLE = {
    "box": f"display: inline-block; max-width: 100%; overflow-x: auto; border: {LINE}; border-radius: 4px; padding: 8px 12px",
    "title": "font-weight: 600; margin-bottom: 4px",
    "faint": "opacity: 0.7; font-weight: 400",
    "table": "border-collapse: collapse; margin: 0; font-size: inherit; font-variant-numeric: tabular-nums",
    "name": "text-align: left; vertical-align: top; padding: 2px 18px 2px 0; font-weight: 400; opacity: 0.75",
    "cell": "text-align: left; vertical-align: top; padding: 2px 0; overflow-wrap: anywhere; max-width: 60em",
    "number": "text-align: right; vertical-align: top; padding: 2px 0 2px 18px; white-space: nowrap",
    "head": f"padding: 2px 0 2px 18px; text-align: right; font-weight: 600; border-bottom: {LINE}",
    "part": f"margin: 6px 0 2px; padding-top: 4px; opacity: 0.75; border-top: {LINE}",
    "note": "opacity: 0.75; margin-top: 4px; max-width: 60em",
    "fold": "margin-top: 6px; cursor: pointer; opacity: 0.85",
}


def box(title: str, remark: str, *parts: str) -> str:
    """Put parts, which are HTML already, below a title; the remark stands behind it in grey."""
    faint = f" <span {_style('faint')}>{escape(remark)}</span>" if remark else ""
    return f"<div {_style('box')}><div {_style('title')}>{escape(title)}{faint}</div>{''.join(parts)}</div>"


def facts(entries: Mapping[str, str]) -> str:
    """Write a table of two columns."""
    lines = (
        f"<tr><th {_style('name')}>{escape(name)}</th><td {_style('cell')}>{escape(text)}</td></tr>"
        for name, text in entries.items()
    )
    return f"<table {_style('table')}>{''.join(lines)}</table>"


def numbers(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Write a table of numbers: a header, and rows that begin with a name."""
    head = "".join(f"<th {_style('head')}>{escape(column)}</th>" for column in columns)
    lines = (
        f"<tr><th {_style('name')}>{escape(name)}</th>"
        + "".join(f"<td {_style('number')}>{escape(cell)}</td>" for cell in cells)
        + "</tr>"
        for name, *cells in rows
    )
    return f"<table {_style('table')}><tr>{head}</tr>{''.join(lines)}</table>"


def part(title: str) -> str:
    """Begin another part of a box, below a line."""
    return f"<div {_style('part')}>{escape(title)}</div>"


def note(text: str) -> str:
    """Write a line of small print."""
    return f"<div {_style('note')}>{escape(text)}</div>"


def folded(title: str, part: str) -> str:
    """Hide a part, which is HTML already, until it is clicked on."""
    return f"<details><summary {_style('fold')}>{escape(title)}</summary>{part}</details>"


def _style(name: str) -> str:
    return f'style="{STYLE[name]}"'
