"""Searches that end in a moment, shared by the tests of tuning."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import tiny

from neurise.dataset import Dataset
from neurise.space import Space
from neurise.tuning.search import Search
from neurise.tuning.task import Task, make_task

SMALL = {"width": 8, "depth": 1, "members": 1}
SMALL |= {"training__batch_size": 32, "architecture__pairwise": False}


def data(n: int = 200, sites: int = 3, **parts: Any) -> Dataset:
    """Rows of ±1 in which two sites mostly agree."""
    return Dataset("pairs", Space(sites, 2), np.array([-1, 1]), train=tiny.spins(n, sites), **parts)


def task(model: str = "neurise", rows: Dataset | None = None, steps: int = 20, **fixed: Any) -> Task:
    known = tiny.model(model).leaves()
    small = {name: value for name, value in SMALL.items() if name in known}
    return make_task(rows or data(), model, small | fixed, max_steps=steps)


def search(folder: Path, trials: int = 3, wanted: Task | None = None, **options: Any) -> Search:
    return Search(wanted or task(), str(folder / "study.journal"), "test", trials, **options)
