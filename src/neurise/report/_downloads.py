"""Files that a page carries in itself: links that save them without a server."""

from __future__ import annotations

import base64
import csv
import io
from collections.abc import Sequence
from html import escape
from typing import Any


def csv_link(name: str, rows: Sequence[Sequence[Any]], what: str) -> str:
    """Link to a table as a .csv file."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    return _link(f"{name}.csv", "text/csv", text.getvalue(), "CSV", what)


def svg_link(name: str, svg: str, what: str, panel: str = "") -> str:
    """Link to a picture as an .svg file; of several panels each says which it is."""
    return _link(f"{name}.svg", "image/svg+xml", svg, f"SVG ({panel})" if panel else "SVG", what)


def _link(name: str, kind: str, text: str, shown: str, what: str) -> str:
    data = base64.b64encode(text.encode()).decode()
    label = escape(f"Download {shown}: {what}")
    return f'<a download="{escape(name)}" href="data:{kind};base64,{data}" aria-label="{label}">{escape(shown)}</a>'
