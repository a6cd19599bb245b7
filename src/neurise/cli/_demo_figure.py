"""The demo's figure: samples as small lattices, and correlation matrices."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from matplotlib.colors import ListedColormap
from matplotlib.patches import Patch

from neurise import drawing

ROWS, COLUMNS = 5, 8
"""Lattices shown of each source."""
DOWN, GAP, UP = "#30475e", "#ffffff", "#f2a154"


def draw(
    path: Path,
    titles: Sequence[str],
    distances: Sequence[float],
    samples: Sequence[np.ndarray],
    correlations: Sequence[np.ndarray],
) -> None:
    """Draw one column per law, the true one first: samples above, correlations below, on one colour scale for all."""
    sites = correlations[0].shape[0]
    off_diagonal = ~np.eye(sites, dtype=bool)
    limit = max(float(np.abs(matrix[off_diagonal]).max()) for matrix in correlations)
    figure = drawing.new_figure(12.5, 7.2)
    panels = figure.subplots(2, len(titles), height_ratios=[ROWS / COLUMNS, 1])
    columns = zip(titles, distances, samples, correlations, strict=True)
    for column, (title, distance, rows, matrix) in enumerate(columns):
        above, below = panels[0, column], panels[1, column]
        above.imshow(
            _mosaic(rows, int(sites**0.5)),
            cmap=ListedColormap([DOWN, GAP, UP]),
            vmin=-1,
            vmax=1,
            interpolation="nearest",
        )
        subtitle = f"{ROWS * COLUMNS} samples" + (f" (total variation {distance:.3f})" if column else "")
        above.set_title(f"{title}\n", fontsize=15, fontweight="bold")
        above.text(0.5, 1.03, subtitle, transform=above.transAxes, ha="center", fontsize=11)
        above.axis("off")
        image = below.imshow(np.where(off_diagonal, matrix, np.nan), cmap=drawing.DIVERGING, vmin=-limit, vmax=limit)
        below.set_facecolor("#dddddd")
        drawing.few_ticks(below, whole=True)
        below.set_xlabel("site $j$")
        error = np.abs(matrix - correlations[0])[off_diagonal].mean()
        below.set_title("exact correlations" if column == 0 else f"correlations, mean error {error:.3f}", fontsize=11)
    panels[1, 0].set_ylabel("site $i$")
    bar = figure.colorbar(image, ax=list(panels[1]), shrink=0.95, pad=0.015)
    bar.set_label(r"$\langle\sigma_i\sigma_j\rangle$, diagonal left out", fontsize=11)
    figure.legend(
        handles=[
            Patch(facecolor=UP, label="up"),
            Patch(facecolor=DOWN, label="down"),
        ],
        title="spin",
        loc="upper right",
        bbox_to_anchor=(1.0, 0.9),
        frameon=False,
        fontsize=11,
    )
    drawing.save(figure, path)


def _mosaic(rows: np.ndarray, side: int) -> np.ndarray:
    """Lay the first lattices out beside one another, with gaps of zeros."""
    step = side + 1
    picture = np.zeros((ROWS * step - 1, COLUMNS * step - 1))
    for place, spins in enumerate(rows[: ROWS * COLUMNS]):
        top, left = (place // COLUMNS) * step, (place % COLUMNS) * step
        picture[top : top + side, left : left + side] = spins.reshape(side, side)
    return picture
