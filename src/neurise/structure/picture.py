"""A picture of recovered couplings: the graph, beside the true one where that is known, and their sizes."""

from __future__ import annotations

import importlib
import importlib.util
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from neurise.dataset import Dataset
from neurise.files import write_atomically
from neurise.structure.recovery import Structure
from neurise.structure.truth import compare, true_structure

if TYPE_CHECKING:
    from matplotlib.axes import Axes

FALSE, MISSED, NODE = "#d81b60", "#9e9e9e", "#30475e"
STUB = 0.42
"""How far an edge that wraps around a lattice sticks out at either end."""
CIRCLE = 40
"""Sites up to which any graph is drawn on a circle."""


def draw(structure: Structure, path: str | Path, data: Dataset | None = None, *, positions: Any = None) -> None:
    """Draw the graph, edges coloured by their couplings, to a file (.png, .pdf, .svg).

    With a data set whose couplings are known the true graph stands beside it, missed and false edges are marked, and the
    third panel shows recovered against true couplings; otherwise it shows the couplings by size. Sites stand on the grid of
    their ``shape``; else where ``positions``, (sites, 2), says; else on a circle, or, of many sites and where networkx is
    installed, as its spring layout puts them.
    """
    try:
        from matplotlib.figure import Figure
        from matplotlib.layout_engine import ConstrainedLayoutEngine
    except ImportError as error:
        raise ImportError(
            f"a picture needs matplotlib ({error}); install it with: pip install 'neurise[plots]'"
        ) from error
    if structure.shape is None and data is not None:
        structure = replace(structure, shape=data.shape)
    known = data is not None and data.edges is not None and data.couplings is not None
    places, layout = _positions(structure, positions), ConstrainedLayoutEngine(w_pad=0.1, h_pad=0.1)
    if data is None or not known:
        figure = Figure(figsize=(9.2, 4.4), layout=layout, dpi=110)
        left, right = figure.subplots(1, 2)
        limit = _limit(structure.couplings)
        _graph(left, structure.couplings, structure.adjacency, places, structure.shape, limit)
        left.set_title(f"recovered: {len(structure.edges)} edges")
        _sizes(right, structure)
    else:
        truth, result = true_structure(data), compare(structure, data)
        figure = Figure(figsize=(13.2, 4.4), layout=layout, dpi=110)
        first, left, right = figure.subplots(1, 3)
        limit = max(_limit(truth.couplings), _limit(np.where(structure.adjacency, structure.couplings, 0)))
        _graph(first, truth.couplings, truth.scores > 0, places, structure.shape, limit)
        first.set_title(f"true: {result.true_edges} edges")
        _graph(left, structure.couplings, structure.adjacency, places, structure.shape, limit, truth.scores > 0)
        marks = [(len(result.missed), "missed (dotted)"), (len(result.false), "false (outlined)")]
        notes = ", ".join(f"{count} {what}" for count, what in marks if count) or "all right"
        left.set_title(f"recovered: {result.found_edges} edges, {notes}")
        _scatter(right, structure, truth.couplings, truth.scores > 0)
        right.set_title(f"area under ROC {result.area:.4f}, RMS error {result.rms:.3f}")
        left = [first, left]
    _colour_bar(figure, left, limit)
    write_atomically(Path(path), lambda place: figure.savefig(place))


def _positions(structure: Structure, given: Any) -> np.ndarray:
    sites, shape = len(structure.tables), structure.shape
    if given is not None:
        places = np.asarray(given, dtype=float)
        if places.shape != (sites, 2):
            raise ValueError(f"positions must be ({sites}, 2), one point a site; the shape is {places.shape}")
        return places
    if shape is not None and len(shape) == 2 and min(shape) > 1:
        row, column = np.divmod(np.arange(sites), shape[1])
        return np.stack([column, -row], axis=1).astype(float)
    if sites > CIRCLE and importlib.util.find_spec("networkx") is not None:
        networkx: Any = importlib.import_module("networkx")
        graph = networkx.Graph(structure.edges.tolist())
        graph.add_nodes_from(range(sites))
        layout = networkx.spring_layout(graph, seed=0)
        return np.array([layout[site] for site in range(sites)])
    angle = 2 * np.pi * np.arange(sites) / sites
    return np.stack([np.sin(angle), np.cos(angle)], axis=1) * sites / 6


def _graph(
    panel: Axes,
    couplings: np.ndarray,
    adjacency: np.ndarray,
    places: np.ndarray,
    shape: tuple[int, ...] | None,
    limit: float,
    truth: np.ndarray | None = None,
) -> None:
    from matplotlib import colormaps

    colours = colormaps["RdBu_r"]
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


def _line(panel: Axes, places: np.ndarray, i: int, j: int, shape: tuple[int, ...] | None, **style: Any) -> None:
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


def _scatter(panel: Axes, structure: Structure, truth: np.ndarray, edge: np.ndarray) -> None:
    upper = np.triu(np.isfinite(structure.scores), 1)
    values = structure.couplings
    span = 1.15 * max(_limit(truth), _limit(values))
    panel.plot([-span, span], [-span, span], color="#bbbbbb", linewidth=1, zorder=0)
    for which, colour, name in ((edge, "#1b7837", "edges"), (~edge, "#762a83", "no edge")):
        panel.scatter(truth[upper & which], values[upper & which], s=16, alpha=0.7, color=colour, label=name)
    if structure.threshold is not None and structure.states == 2:
        for sign in (-1, 1):
            panel.axhline(sign * structure.threshold, color="black", linestyle="--", linewidth=0.8)
        panel.text(span, structure.threshold, "threshold ", ha="right", va="bottom", fontsize=8)
    panel.set(
        xlim=(-span, span), ylim=(-span, span), xlabel="true coupling", ylabel="recovered coupling", aspect="equal"
    )
    panel.legend(loc="upper left", frameon=False)


def _sizes(panel: Axes, structure: Structure) -> None:
    upper = structure.scores[np.triu_indices(len(structure.scores), 1)]
    ranked = np.sort(upper[np.isfinite(upper)])[::-1]
    panel.plot(np.arange(1, len(ranked) + 1), ranked, ".", color=NODE)
    if structure.threshold is not None:
        panel.axhline(structure.threshold, color="black", linestyle="--", linewidth=0.8)
        panel.text(len(ranked), structure.threshold, "threshold", ha="right", va="bottom", fontsize=8)
    panel.set(xlabel="pairs, strongest first", ylabel="strength", ylim=(0, None))
    panel.set_title(f"rule: {structure.rule}")


def _colour_bar(figure: Any, panels: Any, limit: float) -> None:
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import Normalize

    scale = ScalarMappable(Normalize(-limit, limit), "RdBu_r")
    figure.colorbar(scale, ax=panels, shrink=0.8, pad=0.02, label="coupling J")


def _limit(couplings: np.ndarray) -> float:
    return float(np.nanmax(np.abs(couplings), initial=0.0)) or 1.0
