"""A graph whose sites have places: a lattice, or positions that were given."""

from __future__ import annotations

from typing import Any

import numpy as np

from neurise.drawing import DIVERGING, SMALL

FALSE, MISSED, NODE = "#d81b60", "#9e9e9e", "#30475e"
STUB = 0.42
"""How far an edge that wraps around a lattice sticks out at either end."""
SLIM = 0.7
WIDE = 230.0
"""Points that the sites of a panel are spread over, about."""
LARGEST_NODE, LARGEST_EDGE = 15.0, 5.0
"""Points across a site, and across an edge, where there are few."""
MANY_EDGES = 60
"""Edges from which on each is thinner."""
MOST_MEASURED = 3000
"""Sites among which the two nearest are looked for."""
MOST_WRITTEN = 40
"""Edges up to which each bears its coupling and the error of the last digits."""


def places_of(sites: int, shape: tuple[int, ...] | None, given: Any) -> np.ndarray | None:
    """Return where sites stand, (sites, 2): as given, or on their lattice; None where they have no places."""
    if given is not None:
        places = np.asarray(given, dtype=float)
        if places.shape != (sites, 2):
            raise ValueError(f"positions must be ({sites}, 2), one point per site; the shape is {places.shape}")
        return places
    if shape is not None and len(shape) == 2 and min(shape) > 1:
        row, column = np.divmod(np.arange(sites), shape[1])
        return np.stack([column, -row], axis=1).astype(float)
    return None


def graph(
    panel: Any,
    couplings: np.ndarray,
    adjacency: np.ndarray,
    places: np.ndarray,
    shape: tuple[int, ...] | None,
    limit: float,
    truth: np.ndarray | None = None,
    errors: np.ndarray | None = None,
) -> None:
    """Draw edges coloured by their couplings; against a truth, missed edges are dotted and false ones outlined.

    With errors, each of the edges of a small lattice bears its coupling: −1.23(4) is −1.23 ± 0.04.
    """
    from matplotlib import colormaps

    colours = colormaps[DIVERGING]
    node = min(LARGEST_NODE, 0.75 * _nearest(places) * WIDE)
    width = LARGEST_EDGE * node / LARGEST_NODE * min(1.0, (MANY_EDGES / max(1, np.triu(adjacency, 1).sum())) ** 0.5)
    for i, j in np.argwhere(np.triu(adjacency, 1)).tolist():
        if truth is not None and not truth[i, j]:
            _line(panel, places, i, j, shape, color=FALSE, linewidth=1.6 * width)
        _line(panel, places, i, j, shape, color=colours(0.5 + 0.5 * couplings[i, j] / limit), linewidth=width)
    if truth is not None:
        for i, j in np.argwhere(np.triu(truth & ~adjacency, 1)).tolist():
            _line(panel, places, i, j, shape, color=MISSED, linewidth=0.4 * width, linestyle=":")
    panel.scatter(places[:, 0], places[:, 1], s=node**2, color=NODE, zorder=3, linewidths=0)
    if errors is not None and shape is not None and np.triu(adjacency, 1).sum() <= MOST_WRITTEN:
        for i, j in np.argwhere(np.triu(adjacency, 1)).tolist():
            _write(panel, _middle(places[i], places[j], shape), couplings[i, j], errors[i, j])
    if node > 0.8 * LARGEST_NODE:
        for site, (x, y) in enumerate(places.tolist()):
            panel.text(x, y, str(site), color="white", ha="center", va="center", fontsize=8, zorder=4)
    panel.set_aspect("equal")
    panel.margins(0.12)
    _widen(panel)
    panel.axis("off")


def _widen(panel: Any) -> None:
    """Give sites that stand in a line room to either side: a panel is at least SLIM times as wide as it is high."""
    (left, right), (low, high) = panel.get_xlim(), panel.get_ylim()
    for side, other, lower, upper, setting in (
        (right - left, high - low, left, right, panel.set_xlim),
        (high - low, right - left, low, high, panel.set_ylim),
    ):
        more = max(0.0, SLIM * other - side) / 2
        setting(lower - more, upper + more)


def _nearest(places: np.ndarray) -> float:
    """Distance of the two nearest sites, as a share of the whole picture."""
    extent = float(np.ptp(places, axis=0).max()) or 1.0
    if len(places) > MOST_MEASURED:
        return float(1 / len(places) ** 0.5)
    apart = ((places[:, None] - places) ** 2).sum(-1)
    np.fill_diagonal(apart, np.inf)
    return float(min(np.sqrt(apart.min()) / extent, 1.0))


def _middle(start: np.ndarray, end: np.ndarray, shape: tuple[int, ...] | None) -> np.ndarray:
    """Say where the number of an edge stands: on its middle, above a level one, or beyond the stub at its first end."""
    above = np.array([0.0, 0.14 if start[1] == end[1] else 0.0])  # a level edge is hardly longer than its number
    if _wraps(start, end, shape):
        beyond: np.ndarray = start - np.sign(end - start) * (STUB + (0.16 if start[0] == end[0] else -0.1)) + above
        return beyond
    middle: np.ndarray = (start + end) / 2 + above
    return middle


def _write(panel: Any, place: np.ndarray, value: float, error: float) -> None:
    text = in_brackets(value, error)
    box = {"facecolor": "white", "edgecolor": "none", "pad": 0.6, "alpha": 0.85}
    panel.text(*place, text, fontsize=0.7 * SMALL, ha="center", va="center", zorder=5, bbox=box)


def in_brackets(value: float, error: float) -> str:
    """Write a number with the error of its last digits: −1.23(4)."""
    if not np.isfinite(error) or error <= 0:
        return f"{value:+.2f}".replace("-", "−")
    digits = int(max(0, min(4, -np.floor(np.log10(error)))))
    return f"{value:+.{digits}f}".replace("-", "−") + f"({round(error * 10**digits)})"


def _wraps(start: np.ndarray, end: np.ndarray, shape: tuple[int, ...] | None) -> bool:
    if shape is None or len(shape) != 2:
        return False
    apart = end - start
    around = (np.abs(apart) == np.array([shape[1] - 1, shape[0] - 1])) & (np.abs(apart) > 1)
    return bool(around.any() and np.count_nonzero(apart) == 1)


def _line(panel: Any, places: np.ndarray, i: int, j: int, shape: tuple[int, ...] | None, **style: Any) -> None:
    """Draw an edge: straight; as two stubs where it wraps around a lattice; bent where it would pass through other sites."""
    style = {"solid_capstyle": "round", "zorder": 1, **style}
    start, end = places[i], places[j]
    apart = end - start
    if shape is None or len(shape) != 2:
        panel.plot(*np.stack([start, end]).T, **style)
        return
    if _wraps(start, end, shape):
        outward = -np.sign(apart) * STUB
        panel.plot(*np.stack([start, start + outward]).T, **style)
        panel.plot(*np.stack([end, end - outward]).T, **style)
        return
    if np.abs(apart).max() > 1:
        middle = (start + end) / 2 + 0.18 * np.array([-apart[1], apart[0]])
        part = np.linspace(0, 1, 20)[:, None]
        curve = (1 - part) ** 2 * start + 2 * part * (1 - part) * middle + part**2 * end
        panel.plot(*curve.T, **style)
        return
    panel.plot(*np.stack([start, end]).T, **style)
