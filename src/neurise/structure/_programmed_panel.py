"""Learnt couplings against programmed ones, and the line whose slope is an inverse temperature."""

from __future__ import annotations

from typing import Any

import numpy as np

from neurise import drawing
from neurise.structure.recovery import Structure
from neurise.structure.temperature import effective_temperature

MANY = 300
"""Couplings from which on their points are small and see-through."""


def error_bars(panel: Any, x: np.ndarray, y: np.ndarray, errors: np.ndarray, colour: str) -> None:
    """Draw thin bars of one standard error to either side; what has no error gets none."""
    known = np.isfinite(errors)
    style = {"elinewidth": 0.9, "capsize": 1.5, "zorder": 2}
    panel.errorbar(x[known], y[known], errors[known], fmt="none", ecolor=colour, **style)


def against_programmed(panel: Any, structure: Structure, told: np.ndarray) -> None:
    """Draw learnt couplings over programmed ones, (sites, sites), with the fitted line and its error."""
    found = effective_temperature(structure.couplings, structure.errors, told)
    shown = np.triu((told != 0) & np.isfinite(structure.couplings), 1)
    x, y, errors = told[shown], structure.couplings[shown], structure.errors[shown]
    many, span = len(x) > MANY, 1.08 * float(np.abs(x).max())
    if 4 * len(np.unique(x)) < len(x):  # points of one coupling would hide each other
        x = x + np.random.default_rng(0).uniform(-0.04, 0.04, x.shape) * span
    panel.scatter(x, y, s=7 if many else 14, alpha=0.35 if many else 0.8, linewidths=0, color=drawing.COLOURS[1])
    if not many:
        error_bars(panel, x, y, errors, drawing.COLOURS[1])
    line = np.array([-span, span])
    panel.fill_between(
        line, *((found.slope + side * found.error) * line for side in (-2, 2)), color="#dddddd", zorder=0
    )
    panel.plot(line, found.slope * line, color="black", linewidth=0.9, zorder=1)
    panel.axhline(0, color="#bbbbbb", linewidth=0.6, zorder=0)
    height = 1.15 * max(float(np.abs(y).max()), abs(found.slope) * span)  # the longest bars may stick out
    panel.set(xlabel="programmed coupling", ylabel="learnt coupling", xlim=(-span, span), ylim=(-height, height))
    drawing.few_ticks(panel)
    drawing.title(
        panel,
        f"slope β = {found.slope:.3f} ± {found.error:.3f}, temperature {found.value:.3f} ± {found.value_error:.3f}",
    )
