"""A map of all single changes: sites from left to right, symbols from top to bottom, colours by log-ratio."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from neurise import drawing
from neurise.mutagenesis.changes import Mutations

BAND = 66
"""Sites that stand side by side; more of them go on below."""
CELL = 0.21
"""Inches of a cell, unless the figure would become too large."""
TALLEST = 40.0
"""Inches that a figure is high, at most."""
LEGIBLE = 0.11
"""Inches of a cell below which symbols cannot be written beside every row of cells."""
UNKNOWN = "#d4d4d4"
"""The colour of a change about which the data say nothing."""
EVERY = 5


def draw(found: Mutations, path: str | Path, *, names: Any = None) -> None:
    """Draw the map to a file (.png, .svg, .pdf).

    Red is more probable than the wild type, blue less, white as probable; a dot marks the wild type. Cells are grey where
    a change is impossible, and at sites that never varied in what the model learnt from. ``names`` are those of the sites.
    """
    sites, states = found.log_ratio.shape
    bands = [range(start, min(sites, start + BAND)) for start in range(0, sites, BAND)]
    cell = min(CELL, (TALLEST - 0.7 * len(bands)) / (len(bands) * states))
    width = max(4.5, CELL * len(bands[0]) + 1.9)
    figure = drawing.new_figure(width, max(2.6, len(bands) * (cell * states + 0.75) + 0.45))
    panels = figure.subplots(len(bands), 1, squeeze=False)[:, 0]
    shown = found.log_ratio.copy()
    shown[list(found.constant)] = np.nan
    shown[~np.isfinite(shown)] = np.nan
    limit = float(np.nanmax(np.abs(shown), initial=0.0)) or 1.0
    image = None
    for panel, band in zip(panels, bands, strict=True):
        image = _band(panel, found, shown, band, limit, cell=cell, names=names)
    panels[-1].set_xlabel("site")
    figure.colorbar(
        image, ax=list(panels), shrink=max(0.3, min(0.8, 3.5 / figure.get_figheight())), pad=0.01,
        label="log-ratio, nats",
    )  # fmt: skip
    grey = "" if np.isfinite(shown).all() else "grey: impossible, or a site that never varied"
    text = "log P(mutant) − log P(wild type); dots: wild type"
    figure.suptitle(text + (f"\n{grey}" if width < 8 else f"; {grey}") * bool(grey), fontsize=drawing.TITLE)
    drawing.save(figure, Path(path))


def _band(
    panel: Any, found: Mutations, shown: np.ndarray, band: range, limit: float, *, cell: float, names: Any
) -> Any:
    """Draw the sites of one band."""
    from matplotlib import colormaps

    part = slice(band.start, band.stop)
    colours = colormaps[drawing.DIVERGING].with_extremes(bad=UNKNOWN)
    style: dict[str, Any] = {
        "cmap": colours,
        "vmin": -limit,
        "vmax": limit,
        "aspect": "auto",
        "interpolation": "nearest",
    }
    image = panel.imshow(shown[part].T, **style)
    site, state = np.nonzero(found.is_wild[part])
    panel.scatter(site, state, s=min(16.0, (30 * cell) ** 2), color="black", linewidths=0)
    texts = [str(symbol) for symbol in found.symbols.tolist()]
    every = max(1, round(LEGIBLE / cell + 0.49)) if cell < LEGIBLE else 1
    panel.set_yticks(range(0, len(texts), every), texts[::every], fontsize=drawing.SMALL - 1)
    panel.tick_params(length=2)
    if names is None:
        numbers = [place for place, number in enumerate(band) if number % EVERY == 0]
        panel.set_xticks(numbers, [str(band[place]) for place in numbers], fontsize=drawing.SMALL)
    else:
        panel.set_xticks(range(len(band)), [str(names[number]) for number in band], fontsize=drawing.SMALL, rotation=90)
    panel.set_xlim(-0.5, min(BAND, len(found.wild_type)) - 0.5)  # a last band that is shorter keeps the scale
    panel.spines[["top", "right", "bottom", "left"]].set_visible(False)
    wild = [str(symbol) for symbol in found.wild_type[part].tolist()]
    if max(map(len, wild)) <= 2:
        for place, text in enumerate(wild):
            panel.text(place, -0.62, text, ha="center", va="bottom", fontsize=drawing.SMALL - 1)
    return image
