"""One figure of a model beside its data: correlations, energies or overlaps, and pictures where sites form a grid."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from neurise.evaluation.case import Case
from neurise.extras import need
from neurise.files import write_atomically
from neurise.metrics.cross_correlation import correlations
from neurise.metrics.overlap import overlap

DOTS = 20_000
"""Pairs of sites that are drawn; of more, some."""
PICTURES = (4, 6)
"""Rows and columns of small pictures."""
OVERLAP_ROWS = 3000
REAL, MODEL = "#444444", "#d1495b"


def draw(case: Case, path: Path) -> None:
    """Draw what was compared, as PNG, SVG or PDF by the ending of the path."""
    need("matplotlib", "plots")
    from matplotlib.figure import Figure

    shape = case.data.shape
    gridded = shape is not None and len(shape) == 2 and min(shape) > 1
    panels = [_correlations, _histogram] if case.data.space.sites > 1 else [_histogram]
    figure = Figure(figsize=(4.2 * len(panels) + (6.4 if gridded else 0), 4.0), layout="constrained")
    widths = [4.2] * len(panels) + ([3.2, 3.2] if gridded else [])
    axes = figure.subplots(1, len(widths), width_ratios=widths, squeeze=False)[0]
    for panel, axis in zip(panels, axes, strict=False):
        panel(axis, case)
    if gridded:
        real = case.truth.real[0]
        _pictures(axes[-2], real, case, "real rows", REAL)
        _pictures(axes[-1], case.drawn, case, "samples", MODEL)
    figure.suptitle(f"{_kind(case)} on {case.data.name}", fontsize=11)
    write_atomically(path, lambda place: figure.savefig(place, dpi=120, format=path.suffix.lstrip(".").lower()))


def _kind(case: Case) -> str:
    return "samples" if case.model is None else type(case.model).__name__


def _correlations(axis: Any, case: Case) -> None:
    """Scatter the correlations of samples against those of real rows; what is on the diagonal is right."""
    real, second = case.truth.real
    sites = case.data.space.sites
    first, then = np.triu_indices(sites, 1)
    if len(first) > DOTS:
        some = np.random.default_rng(0).choice(len(first), DOTS, replace=False)
        first, then = first[some], then[some]
    truth = correlations(real, case.symbols)[first, then]
    style: dict[str, Any] = {"s": 5, "linewidths": 0, "rasterized": True}
    if second is not None:
        axis.scatter(
            truth, correlations(second, case.symbols)[first, then], color=REAL, label="other real rows", **style
        )
    axis.scatter(truth, correlations(case.drawn, case.symbols)[first, then], color=MODEL, label="samples", **style)
    low, high = min(axis.get_xlim()[0], axis.get_ylim()[0]), max(axis.get_xlim()[1], axis.get_ylim()[1])
    axis.plot([low, high], [low, high], color="black", linewidth=0.7, zorder=0)
    axis.set(xlim=(low, high), ylim=(low, high), xlabel="correlation in real rows", ylabel="correlation in samples")
    axis.set_title("two-site correlations", fontsize=10)
    axis.legend(frameon=False, fontsize=8, markerscale=2)


def _histogram(axis: Any, case: Case) -> None:
    """Draw the laws of the energy where it is known, else those of the overlap."""
    real, drawn = case.truth.real[0], case.drawn
    if case.data.log_weight is not None and case.data.couplings is not None:
        energies = [np.asarray(case.data.energy(rows), dtype=float) for rows in (real, drawn)]
        edges = np.histogram_bin_edges(np.concatenate(energies), bins=60)
        for values, colour, label in zip(energies, (REAL, MODEL), ("real rows", "samples"), strict=True):
            axis.hist(values, edges, density=True, histtype="step", color=colour, label=label, linewidth=1.4)
        axis.set(xlabel="energy", ylabel="density")
        axis.set_title("energies", fontsize=10)
    else:
        found = overlap(drawn[:OVERLAP_ROWS], real[:OVERLAP_ROWS], alphabet=case.symbols)
        for law, colour, label in ((found.reference_law, REAL, "real rows"), (found.law, MODEL, "samples")):
            axis.plot(found.values, law, color=colour, label=label, linewidth=1.4)
        seen = np.flatnonzero(found.law + found.reference_law)
        axis.set(xlabel="overlap of two rows", ylabel="probability")
        axis.set_xlim(found.values[seen].min() - 0.02, found.values[seen].max() + 0.02)
        axis.set_title("overlaps", fontsize=10)
    axis.legend(frameon=False, fontsize=8)


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
    axis.imshow(sheet, cmap=colours, interpolation="nearest")
    axis.set_axis_off()
    axis.set_title(title, fontsize=10, color=colour)
