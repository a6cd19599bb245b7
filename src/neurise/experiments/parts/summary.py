"""Tables of rows, as an experiment declares them."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from neurise.experiments.base import Experiment
from neurise.experiments.parts.figures import Table
from neurise.experiments.store import Row, value

LARGEST, SMALLEST = 1e100, 1e-300
"""Sizes between which numbers can be averaged and squared: above, a number is as good as none, and below as zero."""

METHOD = "method"


class Entry(NamedTuple):
    """The mean over rows, their standard deviation (None of one row), the mean of their floors, and how many rows it is."""

    mean: float | None
    spread: float | None
    floor: float | None
    cells: int = 0

    @property
    def error(self) -> float | None:
        """The standard error of the mean, s/√n; None of one row."""
        return None if self.spread is None else self.spread / self.cells**0.5


class Block(NamedTuple):
    """One table: its title, the labels of its rows, how many cells each is the mean of, and the entries."""

    title: str
    labels: list[str]
    counts: list[int]
    entries: list[list[Entry]]


def blocks(experiment: Experiment, table: Table, rows: Sequence[Row]) -> list[Block]:
    """Put finished rows into the tables that are declared: one for each value of ``table.by``."""
    own = [row for row in rows if row["status"] == "done" and matches(row, table.where)]
    found = []
    for part in _values(own, table.by) if table.by else [None]:
        here = [row for row in own if table.by is None or value(row, table.by) == part]
        lines = split(experiment, here, table.rows, others=(table.by,))
        title = f"{table.title}" if part is None else f"{table.title}: {table.by} = {experiment.label(part)}"
        entries = [[entry(line, column.field.name, column.floor) for column in table.columns] for _, line in lines]
        found.append(Block(title, [label for label, _ in lines], [len(line) for _, line in lines], entries))
    return found


def split(
    experiment: Experiment, rows: Sequence[Row], name: str | None, *, others: Sequence[str | None] = ()
) -> list[tuple[str, list[Row]]]:
    """Split rows by a field, and by the method too where they have several and neither this nor ``others`` is the method.

    Methods are never averaged. Each part comes with its label.
    """
    names = [name] if name else []
    if METHOD not in (name, *others) and len(_values(rows, METHOD)) > 1:
        names.append(METHOD)
    parts: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        parts.setdefault(tuple(value(row, field) for field in names), []).append(row)
    return [(", ".join(experiment.label(part) for part in key), lines) for key, lines in parts.items()]


def matches(row: Row, where: Mapping[str, Any]) -> bool:
    """Whether a row has the values that are asked for."""
    return all(value(row, name) == wanted for name, wanted in where.items())


def entry(rows: Sequence[Row], name: str, floor: str | None = None) -> Entry:
    """Average a field over rows; what a row lacks is left out."""
    numbers = _numbers(rows, name)
    floors = _numbers(rows, floor) if floor else []
    return Entry(
        statistics.fmean(numbers) if numbers else None,
        statistics.stdev(numbers) if len(numbers) > 1 else None,
        statistics.fmean(floors) if floors else None,
        len(numbers),
    )


def number(value: Any) -> float | None:
    """Return a value as a number to compute with; None where it is none."""
    if not isinstance(value, int | float) or not abs(value) <= LARGEST:
        return None
    return float(value) if abs(value) >= SMALLEST else 0.0


def _numbers(rows: Sequence[Row], name: str) -> list[float]:
    found = (number(value(row, name)) for row in rows)
    return [known for known in found if known is not None]


def _values(rows: Sequence[Row], name: str) -> list[Any]:
    """The values of a field, each once, as they come."""
    return list(dict.fromkeys(value(row, name) for row in rows))
