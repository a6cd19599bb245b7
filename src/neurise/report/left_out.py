"""List the parts of an experiment that were never started at the scale that is shown, as combinations of its parameters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from neurise.experiments import Cell
from neurise.report._gather import Section
from neurise.report._numbers import counted

MOST = 12
"""So many combinations are named one by one."""
Box = tuple[tuple[Any, ...], ...]
"""Values of each axis, of which all combinations are missing; the last axis are the seeds."""


def left_out(section: Section) -> list[str]:
    """Name the methods that have no row, not even a failed one, and the combinations that the other methods lack."""
    begun = {row["parameters"].get("method") for row in section.rows}
    absent = [section.experiment.label(name) for name in section.experiment.methods if name not in begun]
    rows = {row["key"] for row in section.rows}
    missing = [cell for cell in section.planned if cell.key not in rows and cell.parameters.get("method") in begun]
    lines = _combinations(section, missing)
    more = [f"and {len(lines) - MOST:,} more combinations"] if len(lines) > MOST else []
    return [*([", ".join(absent)] if absent else []), *lines[:MOST], *more]


def _combinations(section: Section, cells: Sequence[Cell]) -> list[str]:
    axes = _axes(section)
    boxes: list[Box] = [
        ((cell.parameters.get("method"),), *((cell.parameters.get(name),) for name in axes), (cell.seed,))
        for cell in cells
    ]
    for axis in reversed(range(len(axes) + 2)):
        boxes = _merged(boxes, axis)
    return [" ".join(_words(section, axes, box)) for box in boxes]


def _axes(section: Section) -> list[str]:
    """Name the parameters, the method apart, that take several values in the plan and that a scale declares."""
    declared = section.experiment.scales[section.scale].axes
    found: dict[str, set[Any]] = {}
    for cell in section.planned:
        for name in declared:
            found.setdefault(name, set()).add(cell.parameters.get(name))
    return [name for name, values in found.items() if len(values) > 1]


def _merged(boxes: Sequence[Box], axis: int) -> list[Box]:
    """Join boxes that differ in one axis alone."""
    joined: dict[Box, list[Any]] = {}
    for box in boxes:
        joined.setdefault((*box[:axis], *box[axis + 1 :]), []).extend(box[axis])
    return [(*rest[:axis], tuple(dict.fromkeys(values)), *rest[axis:]) for rest, values in joined.items()]


def _words(section: Section, axes: Sequence[str], box: Box) -> list[str]:
    """Write a box: its methods, the values of each axis that it does not hold as a whole, and how many trials."""
    methods, *places, seeds = box
    planned = {name: {cell.parameters.get(name) for cell in section.planned} for name in axes}
    everyone = {*section.experiment.methods, *(cell.parameters.get("method") for cell in section.planned)}
    names = "every method," if len(methods) > 1 and set(methods) == everyone else None
    called = [] if methods == (None,) else [names or ", ".join(map(section.experiment.label, methods))]
    parts = [
        f"{name} {', '.join(map(section.experiment.label, values))}"
        for name, values in zip(axes, places, strict=True)
        if set(values) != planned[name]
    ]
    every = {cell.seed for cell in section.planned}
    trials = [] if set(seeds) == every and parts else [f"{len(seeds)} of {counted(len(every), 'trial')}"]
    return [*called, *([" × ".join(parts)] if parts else []), *(["in"] if parts and trials else []), *trials]
