"""The points of a figure: means and spreads of rows, series by series."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from neurise.experiments import Experiment, Field, Figure, store
from neurise.experiments.parts.summary import (
    METHOD,
    device_of,
    entry,
    matches,
    number,
    parts_of_cells,
    ran_alone,
    split,
)

OF_LAW = ", its law"
"""What is added to the name of a line that is of the laws of models, and not of samples."""


@dataclass(frozen=True)
class Point:
    """A mean over cells, and their standard deviation over trials, or over instances where each has one trial."""

    x: Any
    mean: float
    spread: float | None
    cells: int
    over_instances: bool = False


@dataclass(frozen=True)
class Series:
    """One line, and how it is called; a floor is no method, and is there to compare with."""

    label: str
    points: list[Point]
    floor: bool = False


@dataclass(frozen=True)
class Panel:
    """Lines that share a pair of axes."""

    label: str
    series: list[Series]


def panels(experiment: Experiment, figure: Figure, rows: Sequence[store.Row]) -> list[Panel]:
    """Average rows into the lines that a figure declares; a panel without a single point is left out."""
    left = set(few(experiment, figure, rows))
    own = [row for row in rows if matches(row, figure.where)]
    own = [row for row in own if experiment.label(store.value(row, METHOD)) not in left]
    found = []
    for part in _values(own, figure.panel) if figure.panel else [None]:
        here = [row for row in own if figure.panel is None or store.value(row, figure.panel) == part]
        lines = []
        for label, line in _series(experiment, figure, here):
            for field in figure.y:
                named = ", ".join(filter(None, (label, field.label if len(figure.y) > 1 or not label else "")))
                lines += _drawn(figure, field, named, line)
        lines += [Series(floor.label, _points(figure, floor, here), True) for floor in figure.floors]
        lines = [line for line in lines if line.points]
        if any(not line.floor for line in lines):
            found.append(Panel("" if part is None else f"{figure.panel}: {experiment.label(part)}", lines))
    return found


def few(experiment: Experiment, figure: Figure, rows: Sequence[store.Row]) -> list[str]:
    """Name the methods that have less than half of the cells of others: their means are of other cells, and are not drawn."""
    own = [row for row in rows if matches(row, figure.where)]
    lines = split(experiment, own, METHOD)
    whole = {label for label, _ in parts_of_cells(lines)[0][1]}
    return [label for label, _ in lines if label not in whole]


def _drawn(figure: Figure, field: Field, label: str, rows: Sequence[store.Row]) -> list[Series]:
    """Make the lines of a field: by numbers of the law where all rows have them, and times apart for each kind of device."""
    if figure.times:
        kinds: dict[str, list[store.Row]] = {}
        for row in filter(ran_alone, rows):
            kinds.setdefault(device_of(row), []).append(row)
        return [Series(f"{label} ({kind})", _points(figure, field, line)) for kind, line in kinds.items()]
    if field.law and rows and all(number(store.value(row, field.law)) is not None for row in rows):
        return [Series(f"{label}{OF_LAW}", _points(figure, replace(field, name=field.law), rows))]
    return [Series(label, _points(figure, field, rows))]


def csv_rows(figure: Figure, drawn: Sequence[Panel]) -> list[list[Any]]:
    """Give the points as a table, with its head."""
    head = [*([figure.panel] if figure.panel else []), "series", figure.x.name, "mean", "standard_deviation", "cells"]
    lines: list[list[Any]] = [head]
    for panel in drawn:
        for line in panel.series:
            for point in line.points:
                place = [panel.label] if figure.panel else []
                lines.append([*place, line.label, point.x, point.mean, point.spread, point.cells])
    return lines


def _points(figure: Figure, field: Field, rows: Sequence[store.Row]) -> list[Point]:
    points = []
    for x in _values(rows, figure.x.name):
        here = [row for row in rows if store.value(row, figure.x.name) == x]
        found = entry(here, field.name)
        has_place = isinstance(x, str) or (x is not None and number(x) == x)
        if has_place and found.mean is not None:
            spread = found.between if found.spread is None else found.spread
            points.append(Point(x, found.mean, spread, found.cells, found.spread is None))
    numbers = all(isinstance(point.x, int | float) for point in points)
    return sorted(points, key=lambda point: point.x) if numbers else points


def _series(experiment: Experiment, figure: Figure, rows: Sequence[store.Row]) -> list[tuple[str, Sequence[store.Row]]]:
    """Split the rows of a panel into lines, with their labels; a number is called by its field too."""
    found: list[tuple[str, Sequence[store.Row]]] = []
    for name in _values(rows, figure.series) if figure.series else [None]:
        line = [row for row in rows if figure.series is None or store.value(row, figure.series) == name]
        label = "" if figure.series is None else experiment.label(name)
        if label == str(name) and isinstance(name, float | int) and figure.series:
            label = f"{figure.series.replace('_', ' ')} {name:g}"
        for method, part in split(experiment, line, None, others=(figure.series, figure.panel)):
            found.append((", ".join(filter(None, (label, method))), part))
    return found


def _values(rows: Sequence[store.Row], name: str) -> list[Any]:
    values = list(dict.fromkeys(store.value(row, name) for row in rows))
    return sorted(values) if all(isinstance(value, int | float) for value in values) else values
