"""Rows of results that no computer computed: numbers by a formula, for tests of the page alone."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np

from neurise import experiments
from neurise.experiments import grid, store

MACHINE = {
    "platform": "Linux x86_64 glibc 2.36",
    "cores": 2,
    "python": "3.11.7",
    "torch": "2.13.0",
    "device": "cpu",
    "device_name": "x86",
}


def fields(experiment: experiments.Experiment) -> set[str]:
    """Name everything that the figures and tables of an experiment ask for."""
    found = set()
    for figure in experiment.figures:
        found |= {field.name for field in (*figure.y, *figure.floors)}
    for table in experiment.tables:
        for column in table.columns:
            found |= {column.field.name} | ({column.floor} if column.floor else set())
    return found


def rows(name: str, scale: str = "smoke", *, trials: int = 2, methods: Any = ()) -> list[store.Row]:
    """Make a finished row for each cell of an experiment, with its seeds repeated."""
    experiment = experiments.find(name)
    made = []
    units = [unit for shift in range(trials) for unit in grid.plan(experiment, scale, seed=shift, methods=methods)]
    cells = {cell.key: cell for unit in units for cell in unit.cells}
    for number, cell in enumerate(cells.values()):
        rng = np.random.default_rng(number)
        given = dict(cell.parameters)
        size = float(given.get("rows") or 100)
        metrics = {
            field: float(
                (0.2 if "floor" in field else 0.5 + 0.3 * (number % 5)) / math.sqrt(size / 100) * rng.uniform(0.8, 1.2)
            )
            for field in sorted(fields(experiment) - set(given))
        }
        arrays = {}
        for samples in experiment.grids:
            arrays[samples.array] = store.pack(rng.integers(0, 2, (10, 8, 28, 28)) * (rng.random((28, 28)) < 0.4))
        made.append(row(cell, metrics, arrays))
    return made


def row(
    cell: experiments.Cell, metrics: dict[str, float], arrays: dict[str, Any] | None = None, **changes: Any
) -> store.Row:
    return {
        "format": store.FORMAT,
        "status": "done",
        "experiment": cell.experiment,
        "scale": cell.scale,
        "key": cell.key,
        "unit": cell.key,
        "cells": 1,
        "parameters": dict(cell.parameters),
        "seed": cell.seed,
        "metrics": metrics,
        "times": {},
        "arrays": arrays or {},
        "error": None,
        "traceback": None,
        "code": {"neurise": "0.1.0", "digest": "0123456789ab"},
        "machine": MACHINE,
        "started": "2026-01-02T03:04:05+00:00",
        "seconds": 1.5,
        "beside": 0,
    } | changes


def write(path: Path, made: list[store.Row]) -> Path:
    store.append(path, made)
    return path
