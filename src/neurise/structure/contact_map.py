"""A map of contacts: corrected scores above the diagonal, the strongest pairs below it, and how scores fall off."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from neurise import drawing
from neurise.structure.contact_scores import Contacts

SIZE = 4.8
"""Inches of a panel."""


def draw_contacts(found: Contacts, path: str | Path | None = None, *, most: int | None = None) -> Any:
    """Draw the map to a file (.png, .svg, .pdf) where a path is given, and return the figure.

    ``most`` pairs are marked, by default as many as there are sites.

    >>> import neurise
    >>> data = neurise.datasets.edwards_anderson(side=2, seed=0)
    >>> model = neurise.Pairwise().fit(data.sample(2000, seed=0), verbose=False)
    >>> found = neurise.structure.recover(model, data, verbose=False)
    >>> figure = neurise.structure.draw_contacts(neurise.structure.contacts(found))
    """
    sites = len(found.scores)
    marked = found.pairs[: sites if most is None else most]
    figure = drawing.new_figure(2 * SIZE + 0.9, SIZE)
    left, right = figure.subplots(1, 2)
    upper = np.where(np.triu(np.ones_like(found.scores, dtype=bool), 1), found.scores, np.nan)
    limit = float(np.nanmax(np.abs(upper), initial=0.0)) or 1.0
    image = left.imshow(upper, cmap=drawing.DIVERGING, vmin=-limit, vmax=limit, interpolation="nearest")
    size = max(2.0, min(30.0, (0.6 * 72 * SIZE / sites) ** 2))
    left.scatter(marked[:, 0], marked[:, 1], s=size, marker="s", color=drawing.REAL, linewidths=0)
    left.plot([-0.5, sites - 0.5], [-0.5, sites - 0.5], color="#bbbbbb", linewidth=0.7)
    left.set(xlabel="site", ylabel="site", xlim=(-0.5, sites - 0.5), ylim=(sites - 0.5, -0.5))
    drawing.few_ticks(left, whole=True)
    drawing.title(left, f"above: corrected scores; below: the {len(marked)} strongest pairs")
    figure.colorbar(image, ax=left, shrink=0.8, pad=0.02, label="corrected score")
    first, second = found.pairs.T
    values = found.scores[first, second]
    chosen = np.arange(len(values)) < len(marked)
    for which, colour, name, marker in (
        (chosen, drawing.COLOURS[1], "marked", "o"), (~chosen, drawing.COLOURS[0], "others", "s")
    ):  # fmt: skip
        right.scatter(
            (second - first)[which], values[which], s=9, color=colour, label=name, marker=marker, linewidths=0
        )
    right.axhline(0, color="#bbbbbb", linewidth=0.7, zorder=0)
    right.set(xlabel="separation along the sequence, |i − j|", ylabel="corrected score")
    drawing.few_ticks(right)
    drawing.title(right, f"{len(values):,} pairs, {found.min_separation} or more apart")
    right.legend(**drawing.LEGEND)
    return drawing.save(figure, path)
