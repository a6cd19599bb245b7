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
"""Every how many-th site is numbered."""
WORD, LETTERS = 1.1, 14
"""Inches of a cell that holds a word, and how many letters of it."""
WIDEST = 18.0
"""Inches of a band, at most."""


def draw(found: Mutations, path: str | Path | None = None) -> Any:
    """Draw the map to a file (.png, .svg, .pdf) where a path is given, and return the figure.

    Red is more probable than the wild type, blue less, white as probable; a dot marks the wild type. Cells are grey where
    a change is impossible, and at sites that never varied in what the model learnt from. Where columns have symbols of their own,
    these stand in the cells.
    """
    sites, states = found.log_ratio.shape
    words = any((column != found.symbols[0]).any() for column in found.symbols)
    side = WORD if words else CELL
    longest = min(BAND, max(1, int(WIDEST / side)))
    bands = [range(start, min(sites, start + longest)) for start in range(0, sites, longest)]
    cell = min(CELL, (TALLEST - 0.7 * len(bands)) / (len(bands) * states))
    width = max(4.5, side * len(bands[0]) + 1.9)
    figure = drawing.new_figure(width, max(2.6, len(bands) * (cell * states + 0.75) + 0.45))
    panels = figure.subplots(len(bands), 1, squeeze=False)[:, 0]
    shown = found.log_ratio.copy()
    shown[list(found.constant)] = np.nan
    shown[~np.isfinite(shown)] = np.nan
    limit = float(np.nanmax(np.abs(shown), initial=0.0)) or 1.0
    image = None
    for panel, band in zip(panels, bands, strict=True):
        image = _band(panel, shown[band.start : band.stop], limit)
        panel.set_xlim(-0.5, len(bands[0]) - 0.5)  # a last band that is shorter keeps the scale
        (_words if words else _letters)(panel, found, band, cell)
    panels[-1].set_xlabel("column" if words else "site")
    figure.colorbar(
        image, ax=list(panels), shrink=max(0.3, min(0.8, 3.5 / figure.get_figheight())), pad=0.01,
        label="log-ratio, nats",
    )  # fmt: skip
    unknown = ~np.isfinite(shown) & np.isin(np.arange(sites), found.constant)[:, None] | np.isneginf(found.log_ratio)
    grey = "grey: impossible, or a site that never varied" if unknown.any() else ""
    text = "log P(mutant) − log P(wild type); dots: wild type"
    figure.suptitle(text + (f"\n{grey}" if width < 8 else f"; {grey}") * bool(grey), fontsize=drawing.TITLE)
    return drawing.save(figure, path)


def _band(panel: Any, shown: np.ndarray, limit: float) -> Any:
    """Draw the cells of some sites."""
    from matplotlib import colormaps

    colours = colormaps[drawing.DIVERGING].with_extremes(bad=UNKNOWN)
    panel.tick_params(length=2)
    panel.spines[["top", "right", "bottom", "left"]].set_visible(False)
    style: dict[str, Any] = {"vmin": -limit, "vmax": limit, "aspect": "auto", "interpolation": "nearest"}
    return panel.imshow(shown.T, cmap=colours, **style)


def _letters(panel: Any, found: Mutations, band: range, cell: float) -> None:
    """Mark the wild type of sites that share one alphabet, and write it above them."""
    part = slice(band.start, band.stop)
    site, state = np.nonzero(found.is_wild[part])
    panel.scatter(site, state, s=min(16.0, (30 * cell) ** 2), color="black", linewidths=0)
    texts = [str(symbol) for symbol in found.symbols[0].tolist()]
    every = max(1, round(LEGIBLE / cell + 0.49)) if cell < LEGIBLE else 1
    panel.set_yticks(range(0, len(texts), every), texts[::every], fontsize=drawing.SMALL - 1)
    if found.names is None:
        numbers = [place for place, number in enumerate(band) if number % EVERY == 0]
        panel.set_xticks(numbers, [str(band[place]) for place in numbers], fontsize=drawing.SMALL)
    else:
        names = [found.names[number] for number in band]
        panel.set_xticks(range(len(band)), names, fontsize=drawing.SMALL, rotation=90)
    wild = [str(symbol) for symbol in found.wild_type[part].tolist()]
    if max(map(len, wild)) <= 2:
        for place, text in enumerate(wild):
            panel.text(place, -0.62, text, ha="center", va="bottom", fontsize=drawing.SMALL - 1)


def _words(panel: Any, found: Mutations, band: range, cell: float) -> None:
    """Write the symbols of each column into its cells, a dot before the wild type; what is no symbol stays white."""
    for place, number in enumerate(band):
        count = sum(symbol is not None for symbol in found.symbols[number].tolist())
        panel.fill_between([place - 0.5, place + 0.5], count - 0.5, found.symbols.shape[1] - 0.5, color="white")
        if cell < LEGIBLE:
            continue
        for state in range(count):
            text = str(found.symbols[number, state])
            text = text if len(text) <= LETTERS else f"{text[: LETTERS - 1]}…"
            dot = "● " if found.is_wild[number, state] else ""
            panel.text(place, state, dot + text, ha="center", va="center", fontsize=drawing.SMALL - 1)
    names = [str(number) if found.names is None else found.names[number] for number in band]
    panel.set_xticks(range(len(band)), names, fontsize=drawing.SMALL, rotation=30, ha="right")
    panel.set_yticks([])
