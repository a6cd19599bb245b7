"""The look of every figure: colours, spaces between panels, few ticks, one way to save. matplotlib is loaded when needed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from neurise.extras import need
from neurise.files import write_atomically

COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#c48a00", "#3a9bd9", "#7f7f7f")
"""After Okabe and Ito: different to every kind of eye, and seen on white as on black."""
REAL, MODEL = "#444444", COLOURS[1]
"""Real rows, and what a model made."""
DIVERGING = "RdBu_r"
"""The colour map of couplings and correlations: white is zero."""
TITLE, SMALL = 10, 8
"""Sizes of letters."""
LEGEND: dict[str, Any] = {"frameon": False, "fontsize": SMALL}
MOST_TICKS = 5
DPI = 120


def new_figure(width: float, height: float) -> Any:
    """Make a figure, in inches, whose panels keep a distance from each other."""
    need("matplotlib", "plots")
    from matplotlib.figure import Figure
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    layout = ConstrainedLayoutEngine(w_pad=0.12, h_pad=0.1, wspace=0.03, hspace=0.03)
    return Figure(figsize=(width, height), layout=layout, dpi=DPI)


def few_ticks(panel: Any, *, most: int = MOST_TICKS, whole: bool = False) -> None:
    """Leave so few ticks on both linear axes that their labels cannot touch; ``whole`` keeps them at whole numbers."""
    from matplotlib.ticker import MaxNLocator

    for axis, scale in ((panel.xaxis, panel.get_xscale()), (panel.yaxis, panel.get_yscale())):
        if scale == "linear":
            axis.set_major_locator(MaxNLocator(most, steps=[1, 2, 5, 10], integer=whole))


def title(panel: Any, text: str) -> None:
    """Write the title of a panel."""
    panel.set_title(text, fontsize=TITLE)


def save(figure: Any, path: str | Path | None) -> Any:
    """Write a figure, as PNG, SVG or PDF by the ending of the path, and return it; without a path return it only.

    A file that is there is whole until the new one is.
    """
    if path is None:
        return figure
    path = Path(path)
    ending = path.suffix.lstrip(".").lower()
    small = {"pil_kwargs": {"optimize": True}} if ending == "png" else {}
    write_atomically(path, lambda place: figure.savefig(place, format=ending or "png", **small))
    return figure
