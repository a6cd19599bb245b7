"""How lines are told apart: by colour, by marker and by dash, so that none of the three is needed."""

from __future__ import annotations

from typing import NamedTuple

from neurise.drawing import COLOURS

MARKERS = ("circle", "square", "triangle", "diamond", "cross", "ring", "bar")
DASHES = ("", "7 3", "2 3", "9 3 2 3", "4 2", "12 3", "1 2")


class Look(NamedTuple):
    """How one line is drawn."""

    colour: str
    marker: str
    dash: str


def look(number: int, *, floor: bool = False) -> Look:
    """Return the look of the line of a number; floors are dashed lines in the colour of the text."""
    if floor:
        return Look("currentColor", "", ("5 4", "2 4", "9 4")[number % 3])
    part = number % len(COLOURS)
    turn = number // len(COLOURS)
    return Look(COLOURS[part], MARKERS[(part + turn) % len(MARKERS)], DASHES[(part + 2 * turn) % len(DASHES)])


def marker(name: str, x: float, y: float, colour: str, size: float = 4.0) -> str:
    """Draw a marker."""
    s, d = size, 1.3 * size
    paths = {
        "square": f"M{x - s:.1f} {y - s:.1f}h{2 * s}v{2 * s}h{-2 * s}z",
        "triangle": f"M{x:.1f} {y - 1.2 * s:.1f}l{1.2 * s:.1f} {2.1 * s:.1f}h{-2.4 * s:.1f}z",
        "diamond": f"M{x:.1f} {y - d:.1f}l{d:.1f} {d:.1f}l{-d:.1f} {d:.1f}l{-d:.1f} {-d:.1f}z",
    }
    if name in paths:
        return f'<path d="{paths[name]}" fill="{colour}"/>'
    if name == "cross":
        lines = f"M{x - s:.1f} {y - s:.1f}l{2 * s} {2 * s}m0 {-2 * s}l{-2 * s} {2 * s}"
        return f'<path d="{lines}" stroke="{colour}" stroke-width="2.2" fill="none"/>'
    if name == "bar":
        return f'<path d="M{x - s:.1f} {y:.1f}h{2 * s}" stroke="{colour}" stroke-width="3.4"/>'
    fill = "none" if name == "ring" else colour
    return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{s}" fill="{fill}" stroke="{colour}" stroke-width="1.6"/>'
