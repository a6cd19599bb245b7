"""A graph whose sites have places: a lattice, or positions that were given."""

from __future__ import annotations

from typing import Any

import numpy as np

from neurise.drawing import DIVERGING

FALSE, MISSED, NODE = "#d81b60", "#9e9e9e", "#30475e"
STUB = 0.42
"""How far an edge that wraps around a lattice sticks out at either end."""


def places_of(sites: int, shape: tuple[int, ...] | None, given: Any) -> np.ndarray | None:
    """Return where sites stand, (sites, 2): as given, or on their lattice; None where they have no places."""
    if given is not None:
        places = np.asarray(given, dtype=float)
        if places.shape != (sites, 2):
            raise ValueError(f"positions must be ({sites}, 2), one point a site; the shape is {places.shape}")
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
) -> None:
    """Draw edges coloured by their couplings; against a truth, missed edges are dotted and false ones outlined."""
    from matplotlib import colormaps

    colours = colormaps[DIVERGING]
    sites = len(places)
    width = 5.0 if sites <= 36 else 5.0 * 6 / sites**0.5
    for i, j in np.argwhere(np.triu(adjacency, 1)).tolist():
        if truth is not None and not truth[i, j]:
            _line(panel, places, i, j, shape, color=FALSE, linewidth=1.6 * width)
        _line(panel, places, i, j, shape, color=colours(0.5 + 0.5 * couplings[i, j] / limit), linewidth=width)
    if truth is not None:
        for i, j in np.argwhere(np.triu(truth & ~adjacency, 1)).tolist():
            _line(panel, places, i, j, shape, color=MISSED, linewidth=0.4 * width, linestyle=":")
    panel.scatter(places[:, 0], places[:, 1], s=230 if sites <= 36 else 8000 / sites, color=NODE, zorder=3)
    if sites <= 36:
        for site, (x, y) in enumerate(places.tolist()):
            panel.text(x, y, str(site), color="white", ha="center", va="center", fontsize=8, zorder=4)
    panel.set_aspect("equal")
    panel.margins(0.12)
    panel.axis("off")


def _line(panel: Any, places: np.ndarray, i: int, j: int, shape: tuple[int, ...] | None, **style: Any) -> None:
    """Draw an edge: straight; as two stubs where it wraps around a lattice; bent where it would pass through other sites."""
    style = {"solid_capstyle": "round", "zorder": 1, **style}
    start, end = places[i], places[j]
    apart = end - start
    if shape is None or len(shape) != 2:
        panel.plot(*np.stack([start, end]).T, **style)
        return
    around = (np.abs(apart) == np.array([shape[1] - 1, shape[0] - 1])) & (np.abs(apart) > 1)
    if around.any() and np.count_nonzero(apart) == 1:
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
