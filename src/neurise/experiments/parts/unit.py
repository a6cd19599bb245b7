"""One unit of an experiment: what is computed and stored as a whole. This is what travels to workers."""

from __future__ import annotations

import re
import time
import traceback
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from pathlib import PurePath
from typing import Any

from neurise import executors
from neurise.experiments import store
from neurise.experiments._code import machine, version
from neurise.experiments.base import Cell, Experiment, Outcome, digest


@dataclass(frozen=True)
class Unit:
    """What is computed and stored as a whole: one cell, or a group of cells that are trained together."""

    cells: tuple[Cell, ...]

    @cached_property
    def key(self) -> str:
        """Digest of the cells; a cell that is alone has its own."""
        return self.cells[0].key if len(self.cells) == 1 else digest([cell.key for cell in self.cells])


def execute(experiment: Experiment, cells: Sequence[Cell], device: str | None) -> list[store.Row]:
    """Compute one unit with one thread, wherever this is, and return the rows to store: its metrics, or its error."""
    executors.use_one_thread()
    started, began = datetime.now(UTC), time.perf_counter()
    outcomes: Sequence[Outcome] = [Outcome({})] * len(cells)
    told: dict[str, Any] = {"status": "done", "error": None, "traceback": None}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("ignore")
        warnings.simplefilter("always", UserWarning)
        try:
            single = len(cells) == 1
            outcomes = [experiment.run(cells[0], device)] if single else experiment.run_group(cells, device)
        except Exception as error:
            told = _failure(error, traceback.format_exc())
    told["warnings"] = list(dict.fromkeys(" ".join(str(warning.message).split()) for warning in caught))
    told |= {
        "machine": machine(device) if told["status"] == "done" else {},
        "started": started.isoformat("T", "seconds"),
    }
    told["seconds"] = (time.perf_counter() - began) / len(cells)
    return [_row(experiment, Unit(tuple(cells)), *pair, told) for pair in zip(cells, outcomes, strict=True)]


def lost(experiment: Experiment, unit: Unit, error: Exception) -> list[store.Row]:
    """Return the rows of a unit that was lost outside of its own computation, with its worker say."""
    told = _failure(error, "".join(traceback.format_exception(error)))
    told |= {"warnings": [], "machine": {}, "started": datetime.now(UTC).isoformat("T", "seconds"), "seconds": None}
    return [_row(experiment, unit, cell, Outcome({}), told) for cell in unit.cells]


def _row(experiment: Experiment, unit: Unit, cell: Cell, outcome: Outcome, told: dict[str, Any]) -> store.Row:
    return {
        "format": store.FORMAT,
        "status": told["status"],
        "experiment": cell.experiment,
        "scale": cell.scale,
        "key": cell.key,
        "unit": unit.key,
        "cells": len(unit.cells),
        "parameters": dict(cell.parameters),
        "seed": cell.seed,
        "metrics": dict(outcome.metrics),
        "times": dict(outcome.times),
        "arrays": dict(outcome.arrays),
        "budget": dict(outcome.budget),
        "code": version(experiment, _method(cell)),
        **{name: entry for name, entry in told.items() if name != "status"},
    }


def _method(cell: Cell) -> str | None:
    method = cell.parameters.get("method")
    return None if method is None else str(method)


def _failure(error: BaseException, trace: str) -> dict[str, Any]:
    message = " ".join(str(error).split())
    # Rows are handed on: where the code lies on this machine is nobody's concern.
    told = re.sub(r'File "([^"]+)"', lambda found: f'File "{_without_folders(found[1])}"', trace)
    return {"status": "failed", "error": f"{type(error).__name__}: {message}".rstrip(": "), "traceback": told}


def _without_folders(path: str) -> str:
    """Shorten the path of a file: from the library's folder on, or to its last three parts."""
    parts = PurePath(path).parts
    own = [place for place, part in enumerate(parts) if part == "neurise"]
    return "/".join(parts[own[-1] :] if own else parts[-3:])
