"""One figure of a model beside its data: correlations, energies or overlaps, and pictures where sites form a grid."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from neurise import drawing
from neurise.drawing import MODEL, REAL
from neurise.evaluation.case import Case
from neurise.metrics.cross_correlation import correlations
from neurise.metrics.overlap import overlap

DOTS = 600
"""Pairs of sites that are drawn as dots; more would hide each other, and are counted in cells."""
CELLS = 60
BAND = (2.5, 97.5)
"""Percentiles of the second lot of real rows between which its band lies."""
PICTURES = (4, 6)
"""Rows and columns of small pictures."""
OVERLAP_ROWS = 3000


def draw(case: Case, path: Path) -> None:
    """Draw what was compared, as PNG, SVG or PDF by the ending of the path."""
    shape = case.data.shape
    gridded = shape is not None and len(shape) == 2 and min(shape) > 1
    panels = [_correlations, _histogram] if case.data.space.sites > 1 else [_histogram]
    widths = [4.2] * len(panels) + ([3.4, 3.4] if gridded else [])
    figure = drawing.new_figure(sum(widths), 4.0)
    axes = figure.subplots(1, len(widths), width_ratios=widths, squeeze=False)[0]
    for panel, axis in zip(panels, axes, strict=False):
        panel(axis, case)
        drawing.few_ticks(axis)
    if gridded:
        real = case.truth.real[0]
        _pictures(axes[-2], real, case, "real rows", REAL)
        _pictures(axes[-1], case.drawn, case, "samples", MODEL)
    figure.suptitle(f"{_kind(case)} on {case.data.name}", fontsize=11)
    drawing.save(figure, path)


def _kind(case: Case) -> str:
    return "samples" if case.model is None else type(case.model).__name__


def _correlations(axis: Any, case: Case) -> None:
    """Draw the correlations of samples against those of real rows; what is on the diagonal is right."""
    real, second = case.truth.real
    pairs = np.triu_indices(case.data.space.sites, 1)
    truth, drawn = (correlations(rows, case.symbols)[pairs] for rows in (real, case.drawn))
    other = None if second is None else correlations(second, case.symbols)[pairs]
    low, high = _limits(truth, drawn, *([] if other is None else [other]))
    axis.plot([low, high], [low, high], color="black", linewidth=0.7, zorder=0)
    handles = None
    if len(truth) > DOTS:
        handles = _cells(axis, truth, drawn, other, (low, high))
    else:
        style: dict[str, Any] = {"linewidths": 0.9, "zorder": 2}
        if other is not None:  # rings around dots: neither hides the other
            axis.scatter(truth, other, s=26, facecolors="none", edgecolors=REAL, label="other real rows", **style)
        axis.scatter(truth, drawn, s=7, color=MODEL, label="samples", **{**style, "linewidths": 0, "zorder": 3})
    axis.set(xlim=(low, high), ylim=(low, high), xlabel="correlation in real rows", ylabel="correlation in samples")
    axis.set_aspect("equal")
    drawing.title(axis, "two-site correlations")
    # Dots may lie anywhere: the legend goes where there are fewest. Cells have no such place to be found.
    axis.legend(handles=handles, **drawing.LEGEND, loc="best" if handles is None else "upper left")


def _limits(*parts: np.ndarray) -> tuple[float, float]:
    """Return the range of all values, with a margin that keeps points off the frame."""
    low, high = min(float(part.min()) for part in parts), max(float(part.max()) for part in parts)
    margin = 0.06 * (high - low) or 0.05
    return low - margin, high + margin


def _cells(
    axis: Any, truth: np.ndarray, drawn: np.ndarray, other: np.ndarray | None, limits: tuple[float, float]
) -> list[Any]:
    """Count pairs in cells, darker where there are more, below the band that the second lot of real rows lies in.

    Returns what the legend is to name.
    """
    from matplotlib.colors import LinearSegmentedColormap, LogNorm
    from matplotlib.patches import Patch

    shades = LinearSegmentedColormap.from_list("pairs", ["#fbd9c3", MODEL, "#5a2500"])
    counts, edges, _ = np.histogram2d(truth, drawn, bins=CELLS, range=[limits, limits])
    shown = np.ma.masked_equal(counts.T, 0)
    axis.pcolormesh(edges, edges, shown, cmap=shades, norm=LogNorm(1, max(2, counts.max())), rasterized=True, zorder=1)
    handles = [Patch(color=MODEL, label=f"samples, {len(truth):,} pairs (darker: more)")]
    if other is not None:
        place = np.clip(np.digitize(truth, edges) - 1, 0, CELLS - 1)
        parts = [(cell, other[place == cell]) for cell in range(CELLS) if (place == cell).any()]
        middles = [(edges[cell] + edges[cell + 1]) / 2 for cell, _ in parts]
        for percentile in BAND:
            heights = [np.percentile(values, percentile) for _, values in parts]
            (line,) = axis.plot(middles, heights, color=REAL, linewidth=1.2, linestyle="--", zorder=3)
        line.set_label("other real rows: 95 in 100")
        handles.append(line)
    return handles


def _histogram(axis: Any, case: Case) -> None:
    """Draw the laws of the energy where it is known, else those of the overlap."""
    real, drawn = case.truth.real[0], case.drawn
    if case.data.log_weight is not None and case.data.couplings is not None:
        energies = [np.asarray(case.data.energy(rows), dtype=float) for rows in (real, drawn)]
        edges = np.histogram_bin_edges(np.concatenate(energies), bins=60)
        for values, colour, label, dash in zip(
            energies, (REAL, MODEL), ("real rows", "samples"), ("-", "--"), strict=True
        ):
            axis.hist(
                values, edges, density=True, histtype="step", color=colour, label=label, linewidth=1.4, linestyle=dash
            )
        axis.set(xlabel="energy", ylabel="density")
        drawing.title(axis, "energies")
    else:
        found = overlap(drawn[:OVERLAP_ROWS], real[:OVERLAP_ROWS], alphabet=case.symbols)
        marker = "o" if len(found.values) <= 40 else ""
        for law, colour, label, dash in (
            (found.reference_law, REAL, "real rows", "-"),
            (found.law, MODEL, "samples", "--"),
        ):
            axis.plot(found.values, law, dash, color=colour, label=label, linewidth=1.4, marker=marker, markersize=3)
        seen = np.flatnonzero(found.law + found.reference_law)
        axis.set(xlabel="overlap of two rows", ylabel="probability")
        axis.set_xlim(found.values[seen].min() - 0.02, found.values[seen].max() + 0.02)
        drawing.title(axis, "overlaps")
    axis.legend(**drawing.LEGEND)


def _pictures(axis: Any, rows: np.ndarray, case: Case, title: str, colour: str) -> None:
    """Show the first rows as pictures, side by side."""
    from matplotlib import colormaps

    assert case.data.shape is not None
    height, width = case.data.shape
    down, across = PICTURES
    codes = {symbol: code for code, symbol in enumerate(case.data.symbols.tolist())}
    gap = max(1, max(height, width) // 12)
    sheet = np.full((down * (height + gap) - gap, across * (width + gap) - gap), np.nan)
    for number, row in enumerate(rows[: down * across].tolist()):
        top, left = (number // across) * (height + gap), (number % across) * (width + gap)
        image = np.array([codes.get(symbol, len(codes)) for symbol in row], dtype=float)
        sheet[top : top + height, left : left + width] = image.reshape(height, width)
    colours = colormaps["gray_r" if len(codes) == 2 else "viridis"].with_extremes(bad="#c9d3e0")
    axis.imshow(sheet, cmap=colours, interpolation="nearest", vmin=0, vmax=max(1, len(codes) - 1))
    axis.set_axis_off()
    drawing.title(axis, title)
    axis.title.set_color(colour)
