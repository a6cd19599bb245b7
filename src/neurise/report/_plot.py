"""One panel of a figure as SVG: it stands alone when it is saved, and takes the page's text colour while it is on one."""

from __future__ import annotations

from html import escape
from typing import Any

from neurise.experiments import Figure
from neurise.report._axis import Axis, axis
from neurise.report._numbers import counted, readable, with_spread
from neurise.report._palette import Look, look, marker
from neurise.report._points import Panel, Point, Series

WIDTH, HEIGHT = 420, 272
LEFT, RIGHT, TOP, BOTTOM = 58, 34, 12, 46
"""Margins of the frame that holds the lines; on the right stand the numbers of the lines, and the legend below."""
LINE = 18
"""Height of a line of the legend."""
SIZE = 12
"""Of letters."""
LETTER = 6.6
"""Width of a letter, about."""
TAG, APART = 20, 11
"""How far from the frame the numbers of lines stand, and how far from each other."""
CAP, MARGIN = 3, 24


def plot(figure: Figure, panel: Panel) -> str:
    """Draw a panel: axes, floors, error bars, lines, markers, and a legend."""
    points = [point for line in panel.series for point in line.points]
    ends = [end for point in points for end in _ends(point)]
    # A spread as large as its mean would stretch a logarithmic axis without end: its bar is cut there.
    heights = [point.mean for point in points] + [end for end in ends if not figure.log_y or end > 0.1 * _least(points)]
    across = axis([point.x for point in points], log=figure.log_x)
    up = axis(heights, log=figure.log_y, from_zero=True)
    looks = _looks(panel.series)
    legend, below = _legend(panel.series, looks)
    y_label = figure.y[0].label if len(figure.y) == 1 else ""  # of several, the legend says what each is
    body = [
        _frame(across, up, figure.x.label, y_label),
        *(_series(line, looks[number], across, up, figure) for number, line in enumerate(panel.series)),
        _tags(panel.series, looks, across, up),
        legend,
    ]
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT + below}" role="img" '
        f'aria-label="{escape(_alternative(figure, panel))}" font-family="system-ui, sans-serif" font-size="{SIZE}" '
        f'fill="currentColor">{"".join(body)}</svg>'
    )


def hidden(figure: Figure, panel: Panel) -> int:
    """How many points a logarithmic axis cannot show."""
    points = [point for line in panel.series for point in line.points]
    across, up = axis([point.x for point in points], log=figure.log_x), axis([p.mean for p in points], log=figure.log_y)
    return sum(across.place(point.x) is None or up.place(point.mean) is None for point in points)


def _alternative(figure: Figure, panel: Panel) -> str:
    """Say in words what the lines come to, for those who do not see them."""
    lines = []
    for line in panel.series:
        first, last = line.points[0], line.points[-1]
        told = f"{line.label}{' (to compare with)' if line.floor else ''}: {readable(first.mean)} at {first.x}"
        lines.append(told if first is last else f"{told}, {readable(last.mean)} at {last.x}")
    where = f", {panel.label}" if panel.label else ""
    return f"{figure.title}{where}, against {figure.x.label}. {'; '.join(lines)}."


def _looks(series: list[Series]) -> list[Look]:
    counts = {True: 0, False: 0}
    looks = []
    for line in series:
        looks.append(look(counts[line.floor], floor=line.floor))
        counts[line.floor] += 1
    return looks


def _at(across: float, up: float) -> tuple[float, float]:
    return LEFT + across * (WIDTH - LEFT - RIGHT), TOP + (1 - up) * (HEIGHT - TOP - BOTTOM)


def _frame(across: Axis, up: Axis, x_label: str, y_label: str) -> str:
    left, bottom = _at(0, 0)
    right, top = _at(1, 1)
    parts = [f'<path d="M{left} {top}V{bottom}H{right}" fill="none" stroke="currentColor" stroke-opacity=".6"/>']
    written = -LETTER  # where the last text ends: one that would touch it is left out
    for place, name in across.ticks():
        x, _ = _at(place, 0)
        half = LETTER * len(name) / 2
        text = name if x - half >= written + LETTER else ""
        written = x + half if text else written
        parts.append(f'<path d="M{x:.1f} {bottom}v{5 if text else 3}" stroke="currentColor" stroke-opacity=".6"/>')
        parts.append(f'<text x="{x:.1f}" y="{bottom + 18}" text-anchor="middle">{escape(text)}</text>' if text else "")
    for place, text in up.ticks():
        _, y = _at(0, place)
        parts.append(f'<path d="M{left} {y:.1f}h{-5 if text else -3}" stroke="currentColor" stroke-opacity=".6"/>')
        if text:
            parts.append(f'<path d="M{left} {y:.1f}H{right}" stroke="currentColor" stroke-opacity=".12"/>')
            parts.append(f'<text x="{left - 8}" y="{y + 4:.1f}" text-anchor="end">{escape(text)}</text>')
    middle = (top + bottom) / 2
    parts.append(f'<text x="{(left + right) / 2:.1f}" y="{bottom + 38}" text-anchor="middle">{escape(x_label)}</text>')
    turned = f'transform="rotate(-90 13 {middle:.1f})"'
    parts.append(f'<text x="13" y="{middle:.1f}" text-anchor="middle" {turned}>{escape(y_label)}</text>')
    return "".join(parts)


def _series(line: Series, drawn: Look, across: Axis, up: Axis, figure: Figure) -> str:
    places, parts = [], []
    for point in line.points:
        x, y = across.place(point.x), up.place(point.mean)
        if x is None or y is None:
            continue
        places.append(_at(x, y))
        told = escape(f"{line.label}, {figure.x.label} {point.x}: {with_spread(point.mean, point.spread)}")
        shown = "" if line.floor else _bar(point, x, drawn.colour, up) + marker(drawn.marker, *places[-1], drawn.colour)
        parts.append(f"<g>{shown}<title>{told} ({counted(point.cells, 'cell')})</title></g>")
    path = "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in places)
    if line.floor and len(places) == 1:  # a floor at a single place is a level
        path = f"M{LEFT} {places[0][1]:.1f}H{WIDTH - RIGHT}"
    dash = f' stroke-dasharray="{drawn.dash}"' if drawn.dash else ""
    faint = ' stroke-opacity=".75"' if line.floor else ""
    stroke = f'<path d="{path}" fill="none" stroke="{drawn.colour}" stroke-width="1.6"{dash}{faint}/>' if places else ""
    return f'<g class="{"floor" if line.floor else "series"}">{stroke}{"".join(parts)}</g>'


def _tags(series: list[Series], looks: list[Look], across: Axis, up: Axis) -> str:
    """Write the number of each line, which the legend has too, beside its end; numbers that would touch are moved apart."""
    if len(series) < 2:
        return ""
    ends = []
    for number, line in enumerate(series):
        places = [(across.place(point.x), up.place(point.mean)) for point in line.points]
        shown = [_at(x, y) for x, y in places if x is not None and y is not None]
        if shown:
            last = shown[-1] if not line.floor or len(shown) > 1 else (WIDTH - RIGHT, shown[-1][1])
            ends.append((last[1], last[0], number))
    heights = moved_apart([y for y, _, _ in sorted(ends)], APART, TOP, HEIGHT - BOTTOM)
    parts = []
    for height, (y, x, number) in zip(heights, sorted(ends), strict=True):
        colour, place = looks[number].colour, WIDTH - RIGHT + TAG
        leader = f"M{x + 5:.1f} {y:.1f}L{place - 5:.1f} {height:.1f}"
        parts.append(f'<path d="{leader}" stroke="{colour}" stroke-width=".7" stroke-opacity=".5" fill="none"/>')
        parts.append(
            f'<text x="{place}" y="{height + 4:.1f}" font-size="{SIZE - 2}" fill="{colour}">{number + 1}</text>'
        )
    return f'<g class="tags">{"".join(parts)}</g>'


def moved_apart(heights: list[float], apart: float, low: float, high: float) -> list[float]:
    """Move sorted heights so that neighbours are so far apart, between two ends where there is room, and no further."""
    placed: list[float] = []
    for height in heights:
        placed.append(max(height, low, placed[-1] + apart if placed else low))
    for place in range(len(placed) - 1, -1, -1):  # what was pushed out below comes back up
        limit = high if place == len(placed) - 1 else placed[place + 1] - apart
        placed[place] = min(placed[place], limit)
    return placed


def _bar(point: Point, x: float, colour: str, up: Axis) -> str:
    """Draw a standard deviation up and down; a bar that leaves the frame has no cap there."""
    if not point.spread:
        return ""
    caps, ends = "", []
    for value in _ends(point):
        place: Any = up.place(value)
        inside = place is not None and 0 <= place <= 1
        across, height = _at(x, place if inside else float(place is not None and place > 1))
        ends.append(height)
        caps += f"M{across - CAP:.1f} {height:.1f}h{2 * CAP}" if inside else ""
    centre = _at(x, 0)[0]
    lines = f"M{centre:.1f} {ends[0]:.1f}V{ends[1]:.1f}{caps}"
    return f'<path class="bar" d="{lines}" stroke="{colour}" stroke-width="1.2" fill="none"/>'


def _ends(point: Point) -> tuple[float, float]:
    return point.mean - (point.spread or 0.0), point.mean + (point.spread or 0.0)


def _least(points: list[Point]) -> float:
    return min((point.mean for point in points if point.mean > 0), default=0.0)


def _legend(series: list[Series], looks: list[Look]) -> tuple[str, int]:
    """Draw the legend below the frame, in two columns where names are short; return it with its height."""
    columns = 2 if max(len(line.label) for line in series) <= 20 and len(series) > 1 else 1
    lines = -(-len(series) // columns)
    parts = []
    for number, (line, drawn) in enumerate(zip(series, looks, strict=True)):
        x = MARGIN + (number // lines) * (WIDTH - MARGIN) / columns
        y = HEIGHT + LINE * (number % lines) + 8
        dash = f' stroke-dasharray="{drawn.dash}"' if drawn.dash else ""
        parts.append(f'<path d="M{x:.1f} {y}h30" stroke="{drawn.colour}" stroke-width="1.6"{dash}/>')
        parts.append(marker(drawn.marker, x + 15, y, drawn.colour) if drawn.marker else "")
        shown = f"{number + 1}  {line.label}" if len(series) > 1 else line.label
        parts.append(f'<text x="{x + 37:.1f}" y="{y + 4}">{escape(shown)}</text>')
    return f'<g class="legend">{"".join(parts)}</g>', LINE * lines + 4
