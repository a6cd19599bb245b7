"""Look at a figure as its reader does: which labels touch, which panels do, and what sticks out."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import pytest

from neurise import drawing


def drawn_figure(monkeypatch: pytest.MonkeyPatch, draw: Callable[[], None]) -> Any:
    """Draw, and return the figure that was saved."""
    pytest.importorskip("matplotlib")
    found: list[Any] = []
    save = drawing.save

    def watch(figure: Any, path: Any) -> None:
        found.append(figure)
        save(figure, path)

    monkeypatch.setattr(drawing, "save", watch)
    draw()
    (figure,) = found
    return figure


def check(figure: Any) -> None:
    """See that no two tick labels of an axis touch, that no two panels do, and that nothing is cut off."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    renderer = canvas.get_renderer()
    for panel in figure.axes:
        for axis in (panel.xaxis, panel.yaxis):
            labels = [label for label in axis.get_ticklabels() if label.get_visible() and label.get_text()]
            if not panel.axison:
                continue
            boxes = [(label.get_text(), label.get_window_extent(renderer)) for label in labels]
            inside = [(text, box) for text, box in boxes if _near(panel.get_window_extent(renderer), box)]
            for (one, first), (other, second) in itertools.pairwise(inside):
                assert not _touch(first, second), f"{panel.get_title()!r}: tick labels {one!r} and {other!r} touch"
    panels = [(panel.get_title() or panel.get_ylabel(), panel.get_tightbbox(renderer)) for panel in figure.axes]
    for (one, first), (other, second) in itertools.combinations(panels, 2):
        assert not _touch(first, second), f"panels {one!r} and {other!r} touch"
    for name, box in panels:
        whole = figure.bbox
        assert box.x0 >= whole.x0 - 1, f"{name!r} is cut off"
        assert box.x1 <= whole.x1 + 1, f"{name!r} is cut off"
        assert box.y0 >= whole.y0 - 1, f"{name!r} is cut off"
        assert box.y1 <= whole.y1 + 1, f"{name!r} is cut off"


def _near(frame: Any, box: Any) -> bool:
    """Whether a label belongs to a tick inside the frame: matplotlib keeps some that it does not draw."""
    across = frame.x0 - 1 <= (box.x0 + box.x1) / 2 <= frame.x1 + 1
    up = frame.y0 - 1 <= (box.y0 + box.y1) / 2 <= frame.y1 + 1
    return across or up


def _touch(first: Any, second: Any, apart: float = 2.0) -> bool:
    return bool(
        first.x0 < second.x1 + apart
        and second.x0 < first.x1 + apart
        and first.y0 < second.y1 + apart
        and second.y0 < first.y1 + apart
    )
