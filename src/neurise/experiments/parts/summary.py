"""Tables of rows, as an experiment declares them."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

from neurise.experiments.base import Experiment, digest
from neurise.experiments.parts.figures import Column, Table
from neurise.experiments.parts.spread import Situation, Values, over_instances, over_trials
from neurise.experiments.store import Row, value

LARGEST, SMALLEST = 1e100, 1e-300
"""Sizes between which numbers can be averaged and squared: above, a number is as good as none, and below as zero."""

METHOD, METHOD_CODE = "method", "method_code"


class Entry(NamedTuple):
    """The mean over rows, where they vary (None where nothing does), and the mean of their own floors.

    ``spread`` is the standard deviation over trials of one instance, ``between`` that of the means of instances.
    """

    mean: float | None
    spread: float | None
    floor: float | None
    cells: int = 0
    between: float | None = None
    values: Values = MappingProxyType({})


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
        whole = split(experiment, here, table.rows, others=(table.by,))
        head = f"{table.title}" if part is None else f"{table.title}: {table.by} = {experiment.label(part)}"
        for which, lines in parts_of_cells(whole) if table.rows == METHOD else [("", whole)]:
            title = ", ".join(filter(None, (head, which)))
            entries = [[_in_column(column, line, here) for column in table.columns] for _, line in lines]
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
    values = {situation(row): known for row in rows if (known := number(value(row, name))) is not None}
    return Entry(
        statistics.fmean(numbers) if numbers else None,
        over_trials(values),
        statistics.fmean(floors) if floors else None,
        len(numbers),
        over_instances(values),
        values,
    )


def _in_column(column: Column, line: Sequence[Row], all_rows: Sequence[Row]) -> Entry:
    """Average a column; times of several kinds of device, or of cells that did not run alone, are not averaged."""
    if column.times and (len(_kinds(all_rows)) > 1 or not all(map(ran_alone, line))):
        return Entry(None, None, None)
    return entry(line, column.field.name, column.floor)


def ran_alone(row: Row) -> bool:
    """Whether a row says that nothing else was computed beside it or with it, so that its time is its own."""
    return bool(row.get("beside") == 0 and row.get("cells", 1) == 1)


def device_of(row: Row) -> str:
    """Name the kind of device that a row was computed on."""
    return str(row.get("machine", {}).get("device_name") or row.get("machine", {}).get("device"))


def _kinds(rows: Sequence[Row]) -> list[str]:
    return list(dict.fromkeys(map(device_of, rows)))


def situation(row: Row) -> Situation:
    """Say which cell a row is of, its method apart."""
    others = {name: entry for name, entry in row["parameters"].items() if name not in (METHOD, METHOD_CODE)}
    return Situation(digest(others), int(row["seed"]))


def parts_of_cells(lines: Sequence[tuple[str, list[Row]]]) -> list[tuple[str, list[tuple[str, list[Row]]]]]:
    """Split the lines of a table where some have less than half of the cells that others have: such means do not compare.

    The first part has the lines with many cells. Each other part has some with few, and the first ones on the same cells.
    """
    places = {label: frozenset(map(situation, rows)) for label, rows in lines}
    most = max((len(own) for own in places.values()), default=0)
    many = [(label, rows) for label, rows in lines if 2 * len(places[label]) >= most]
    few = dict.fromkeys(places[label] for label, rows in lines if 2 * len(places[label]) < most)
    parts = [("", many)]
    for own in few:
        here = [(label, [row for row in rows if situation(row) in own]) for label, rows in many]
        here = [(label, rows) for label, rows in here if rows]
        here += [(label, rows) for label, rows in lines if places[label] == own]
        parts.append((f"on {len(own):,} of {most:,} cells", here))
    return parts


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
