"""What of an experiment is left to do, and how long that takes by the rows that there are."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import NamedTuple

from neurise.experiments.parts.unit import Unit
from neurise.experiments.store import Row


class Part(NamedTuple):
    """The units of one method: how many cells and units, how many of these are left, and the seconds those take."""

    method: str | None
    cells: int
    units: int
    left: int
    largest: int  # cells of the largest unit
    seconds: float | None  # None where no row tells


def parts(units: Sequence[Unit], missing: Sequence[Unit], rows: Sequence[Row]) -> list[Part]:
    """Split a plan by method. A unit takes as long as finished ones of its method and size did on average, cell by cell."""
    left = {unit.key for unit in missing}
    grouped: dict[str | None, list[Unit]] = {}
    for unit in units:
        method = unit.cells[0].parameters.get("method")
        grouped.setdefault(None if method is None else str(method), []).append(unit)
    return [
        Part(
            method,
            sum(len(unit.cells) for unit in own),
            len(own),
            sum(unit.key in left for unit in own),
            max(len(unit.cells) for unit in own),
            _seconds([unit for unit in own if unit.key in left], rows),
        )
        for method, own in grouped.items()
    ]


def _seconds(units: Sequence[Unit], rows: Sequence[Row]) -> float | None:
    total = 0.0
    for unit in units:
        given = unit.cells[0].parameters
        alike = [row for row in rows if row["parameters"].get("method") == given.get("method") and row.get("seconds")]
        same = [row for row in alike if row["parameters"].get("rows") == given.get("rows")] or alike
        if not same:
            return None
        total += len(unit.cells) * statistics.fmean(float(row["seconds"]) for row in same)
    return total
