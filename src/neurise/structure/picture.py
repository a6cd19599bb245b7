"""A picture of recovered couplings: the graph, beside the true one where that is known, and their sizes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from neurise import drawing
from neurise.dataset import Dataset
from neurise.structure._graph_panel import NODE, graph, places_of
from neurise.structure._matrix_panel import matrix
from neurise.structure._programmed_panel import against_programmed, error_bars
from neurise.structure.door import labels_of
from neurise.structure.layouts import places_by
from neurise.structure.recovery import Structure
from neurise.structure.temperature import programmed_matrix
from neurise.structure.truth import compare, true_structure

HEIGHT, PANEL = 4.4, 4.4
"""Inches of a figure and of each of its panels."""
MANY = 300
"""Pairs from which on their points are small and see-through, and their ranks on a logarithmic axis."""
SPREAD = 0.02
"""Points of one true coupling are spread sideways by so much of the axis: they would hide each other."""


def draw(
    structure: Structure,
    path: str | Path | None = None,
    data: Dataset | None = None,
    *,
    positions: Any = None,
    layout: str | None = None,
    programmed: Any = None,
) -> Any:
    """Draw the graph, edges coloured by their couplings, to a file (.png, .pdf, .svg), and return the figure.

    Without a path no file is written, and ``plt.figure(draw(found))`` shows the figure with matplotlib 3.11 or newer.

    With a data set whose couplings are known the true graph stands beside it, missed and false edges are marked, and the
    third panel shows recovered against true couplings; otherwise it shows the couplings by size, or, with ``programmed``
    ones, against these. Bars are standard errors.

    Sites stand on the grid of their ``shape``, or where ``positions``, (sites, 2), says, or by a ``layout``: ``"grid"``,
    ``"chimera"``, ``"pegasus"`` or ``"zephyr"`` (with its size, ``"pegasus:16"``; qubits are those of the data set), or
    ``"spring"`` (networkx). Sites without places are rows and columns of a matrix.

    >>> import neurise
    >>> data = neurise.datasets.edwards_anderson(side=2, seed=0)
    >>> model = neurise.Pairwise().fit(data.sample(2000, seed=0), verbose=False)
    >>> found = neurise.structure.recover(model, data, verbose=False)
    >>> figure = neurise.structure.draw(found, data=data)
    """
    if structure.shape is None and data is not None:
        structure = replace(structure, shape=data.shape)
    known = programmed is None and data is not None and data.edges is not None and data.couplings is not None
    structure, places = _placed(structure, data, positions, layout)
    figure = drawing.new_figure(PANEL * (3 if known else 2) + 1.0, HEIGHT)
    if data is None or not known:
        left, right = figure.subplots(1, 2)
        limit = _limit(np.where(structure.adjacency, structure.couplings, 0))
        _edges(left, structure, structure.couplings, structure.adjacency, places, limit, errors=structure.errors)
        drawing.title(left, f"recovered: {len(structure.edges)} edges")
        if programmed is None:
            _sizes(right, structure)
        else:
            told = programmed_matrix(programmed, len(structure.tables), None if data is None else labels_of(data))
            against_programmed(right, structure, told)
        panels = [left]
    else:
        truth, result = true_structure(data), compare(structure, data)
        first, left, right = figure.subplots(1, 3)
        limit = max(_limit(truth.couplings), _limit(np.where(structure.adjacency, structure.couplings, 0)))
        _edges(first, structure, truth.couplings, truth.scores > 0, places, limit)
        drawing.title(first, f"true: {result.true_edges} edges")
        _edges(
            left, structure, structure.couplings, structure.adjacency, places, limit, truth.scores > 0, structure.errors
        )
        how = ("dotted", "outlined") if places is not None else ("rings", "squares")
        marks = [(len(result.missed), f"missed ({how[0]})"), (len(result.false), f"false ({how[1]})")]
        notes = ", ".join(f"{count} {what}" for count, what in marks if count) or "all right"
        drawing.title(
            left,
            f"recovered: {result.found_edges} edges,\n{notes}"
            if len(notes) > 24
            else f"recovered: {result.found_edges} edges, {notes}",
        )
        _scatter(right, structure, truth.couplings, truth.scores > 0)
        drawing.title(right, f"area under ROC {result.area:.4f}, RMS error {result.rms:.3f}")
        panels = [first, left]
    _colour_bar(figure, panels, limit)
    return drawing.save(figure, path)


def _placed(
    structure: Structure, data: Dataset | None, positions: Any, layout: str | None
) -> tuple[Structure, np.ndarray | None]:
    """Say where sites stand; a structure that is drawn on something else than its lattice has no shape any more."""
    sites = len(structure.tables)
    if positions is not None and layout is not None:
        raise ValueError("give positions or a layout, not both")
    if layout is None:
        return structure, places_of(sites, structure.shape, positions)
    labels, size = (None, None) if data is None else (labels_of(data), data.info.get("size"))
    places = places_by(layout, sites, shape=structure.shape, labels=labels, edges=structure.edges, size=size)
    if layout != "grid":
        return replace(structure, shape=None), places
    columns = int(places[:, 0].max()) + 1
    return replace(structure, shape=(sites // columns, columns)), places


def _edges(
    panel: Any,
    structure: Structure,
    couplings: np.ndarray,
    adjacency: np.ndarray,
    places: np.ndarray | None,
    limit: float,
    truth: np.ndarray | None = None,
    errors: np.ndarray | None = None,
) -> None:
    if places is None:
        matrix(panel, couplings, adjacency, limit, truth)
    else:
        graph(panel, couplings, adjacency, places, structure.shape, limit, truth, errors)


def _scatter(panel: Any, structure: Structure, truth: np.ndarray, edge: np.ndarray) -> None:
    """Draw recovered couplings against the true ones, spread a little sideways."""
    upper = np.triu(np.isfinite(structure.scores), 1)
    values = structure.couplings
    span = 1.15 * max(_limit(truth), _limit(values))
    panel.plot([-span, span], [-span, span], color="#bbbbbb", linewidth=1, zorder=0)
    many = int(upper.sum()) > MANY
    shift = np.random.default_rng(0).uniform(-SPREAD, SPREAD, truth.shape) * 2 * span
    kinds = ((~edge, drawing.COLOURS[0], "no edge", "s"), (edge, drawing.COLOURS[1], "edges", "o"))
    for which, colour, name, marker in kinds:
        shown = upper & which
        style: dict[str, Any] = {"s": 7 if many else 16, "alpha": 0.35 if many else 0.7, "linewidths": 0}
        panel.scatter((truth + shift)[shown], values[shown], color=colour, label=name, marker=marker, **style)
        if not many:
            error_bars(panel, (truth + shift)[shown], values[shown], structure.errors[shown], colour)
    if structure.threshold is not None and structure.states == 2:
        for sign in (-1, 1):
            panel.axhline(sign * structure.threshold, color="black", linestyle="--", linewidth=0.8)
        panel.text(span, structure.threshold, "threshold ", ha="right", va="bottom", fontsize=drawing.SMALL)
    panel.set(xlim=(-span, span), ylim=(-span, span), ylabel="recovered coupling", aspect="equal")
    panel.set_xlabel("true coupling (points spread sideways)")
    drawing.few_ticks(panel)
    legend = panel.legend(loc="upper left", **drawing.LEGEND)
    for handle in legend.legend_handles:
        handle.set_alpha(1)


def _sizes(panel: Any, structure: Structure) -> None:
    """Draw the strengths of all pairs, the strongest first, and the standard errors of the edges'."""
    above = np.triu_indices(len(structure.scores), 1)
    upper, errors, edge = (numbers[above] for numbers in (structure.scores, structure.errors, structure.adjacency))
    order = np.argsort(-upper, kind="stable")[: np.isfinite(upper).sum()]  # NaN comes last
    ranked, place = upper[order], np.arange(1, len(order) + 1)
    panel.plot(place, ranked, ".-", color=NODE, markersize=4, linewidth=0.7)
    many = len(ranked) > MANY
    edges = edge[order]
    if edges.sum() <= MANY:
        error_bars(panel, place[edges], ranked[edges], errors[order][edges], drawing.COLOURS[1])
    if many:  # edges are few among many pairs, and would all stand at the frame
        panel.set_xscale("log")
    if structure.threshold is not None:
        panel.axhline(structure.threshold, color="black", linestyle="--", linewidth=0.8)
        panel.text(
            max(len(ranked), 1), structure.threshold, "threshold", ha="right", va="bottom", fontsize=drawing.SMALL
        )
    # The strengths set the scale: the bar of one pair that hardly anything is known of would hide all others.
    panel.set(
        xlabel="pairs, strongest first", ylabel="strength", ylim=(0, 1.25 * float(ranked.max(initial=0.0)) or 1.0)
    )
    drawing.few_ticks(panel)
    drawing.title(panel, f"rule: {structure.rule}")


def _colour_bar(figure: Any, panels: Any, limit: float) -> None:
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import Normalize
    from matplotlib.ticker import MaxNLocator

    scale = ScalarMappable(Normalize(-limit, limit), drawing.DIVERGING)
    figure.colorbar(scale, ax=panels, shrink=0.8, pad=0.02, label="coupling J", ticks=MaxNLocator(drawing.MOST_TICKS))


def _limit(couplings: np.ndarray) -> float:
    return float(np.nanmax(np.abs(couplings), initial=0.0)) or 1.0
