"""A graph whose sites have no places: the matrix of its couplings, which puts no site next to another that it is not."""

from __future__ import annotations

from typing import Any

import numpy as np

from neurise import drawing
from neurise.structure._graph_panel import FALSE, MISSED

NO_EDGE = "#f0f0f0"
WIDEST_MARK = 11.0
"""Points that the mark of a pair is wide at most, in a matrix of few sites."""
LARGE = 100
"""Sites above which a cell of the matrix would be smaller than a pixel or two, and pairs are drawn as marks instead."""
PANEL = 270.0
"""Points that a matrix is wide, about."""


def matrix(
    panel: Any, couplings: np.ndarray, adjacency: np.ndarray, limit: float, truth: np.ndarray | None = None
) -> None:
    """Colour the pairs that are edges by their couplings; against a truth, ring the missed ones and square the false."""
    sites = len(couplings)
    style: dict[str, Any] = {"cmap": drawing.DIVERGING, "vmin": -limit, "vmax": limit}
    panel.set_facecolor(NO_EDGE)  # on white paper a weak edge would look like none
    if sites <= LARGE:
        panel.imshow(np.where(adjacency, couplings, np.nan), interpolation="nearest", **style)
    else:
        row, column = np.nonzero(adjacency)
        panel.scatter(column, row, c=couplings[row, column], s=4.0, marker="s", linewidths=0, rasterized=True, **style)
        panel.set_aspect("equal")
    if truth is not None:
        size = min(WIDEST_MARK, 1.6 * PANEL / sites) ** 2
        for which, mark, colour in ((truth & ~adjacency, "o", MISSED), (adjacency & ~truth, "s", FALSE)):
            row, column = np.nonzero(which)
            panel.scatter(
                column, row, s=max(size, 9.0), marker=mark, facecolors="none", edgecolors=colour, linewidths=1.3
            )
    panel.set(xlabel="site", ylabel="site", xlim=(-0.5, sites - 0.5), ylim=(sites - 0.5, -0.5))
    drawing.few_ticks(panel, whole=True)
