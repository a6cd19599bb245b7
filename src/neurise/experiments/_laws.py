"""Experiments about a known law: learn from rows of it, and compare what was learnt with it."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from neurise.experiments._methods import build, limits, trainable
from neurise.experiments.base import Cell, Experiment, Outcome, Scalar
from neurise.experiments.parts.figures import Column, Field, Figure, Table

if TYPE_CHECKING:
    import numpy as np

    from neurise.dataset import Dataset
    from neurise.modeling.model import Model

SIZES = (100, 320, 1000, 3200, 10_000, 32_000, 100_000)
"""Numbers of rows in the paper: two a decade."""

ROWS = Field("rows", "training rows N")
TV = Field("tv", "total variation", law="law_tv")
LAW_TV = Field("law_tv", "TV of the law")
MEMORISED = Field("memorised_tv", "memorising the rows")
FLOOR = Field("tv_floor", "as many exact samples")
SECONDS = Field("train_seconds", "training time, s")


class LawExperiment(Experiment):
    """Draws rows from a law, trains on them, draws from the model. It writes ``law`` and ``judge``."""

    any_model = True

    @abstractmethod
    def law(self, parameters: Mapping[str, Scalar]) -> Dataset:
        """Return the law of a cell."""

    @abstractmethod
    def judge(self, model: Model, data: Dataset, rows: np.ndarray, drawn: np.ndarray, cell: Cell) -> Mapping[str, Any]:
        """Compare what was drawn, and the model itself, with the law."""

    def rows_to_search_on(self, parameters: Mapping[str, Scalar], seed: int) -> Dataset:
        """Draw rows that no cell learns from."""
        from neurise.experiments._measure import derived

        data = self.law(parameters)
        rows = data.sample(int(parameters["rows"]), seed=derived(5, seed))  # type: ignore[arg-type]
        return replace(data, train=rows, test=None)

    def run(self, cell: Cell, device: str | None) -> Outcome:
        """Train and compare one model."""
        from neurise.experiments._measure import train

        data, rows, model = self._prepared(cell)
        seconds = train(model, rows, seed=cell.seed, device=device, **limits(cell.parameters))
        return self._judged(model, data, rows, cell, seconds)

    def run_group(self, cells: Sequence[Cell], device: str | None) -> list[Outcome]:
        """Train all models together; compare one after the other."""
        from neurise.experiments._measure import train_together

        laws, sets, models = zip(*(self._prepared(cell) for cell in cells), strict=True)
        seeds, limit = [cell.seed for cell in cells], limits(cells[0].parameters)
        fitted, seconds = train_together(models, sets, seeds, device=device, **limit)
        return [self._judged(*parts, seconds) for parts in zip(fitted, laws, sets, cells, strict=True)]

    def groupable(self, parameters: Mapping[str, Scalar]) -> bool:
        """Whether the method trains a network."""
        return trainable(str(parameters.get("method", "neurise")))

    def _prepared(self, cell: Cell) -> tuple[Dataset, np.ndarray, Model]:
        from neurise.experiments._measure import derived

        data = self.law(cell.parameters)
        size, instance = int(cell.parameters["rows"]), int(cell.parameters.get("instance") or 0)  # type: ignore[arg-type]
        # The same rows for every method.
        return data, data.sample(size, seed=derived(1, cell.seed, instance, size)), build(cell.parameters, data)

    def _judged(self, model: Model, data: Dataset, rows: np.ndarray, cell: Cell, seconds: float) -> Outcome:
        from neurise.experiments._measure import budget, derived, draw, used_rows

        drawn, sampling = draw(model, int(cell.parameters["draws"]), derived(2, cell.seed))  # type: ignore[arg-type]
        found = self.judge(model, data, rows, drawn, cell)
        return Outcome(
            {**found, **used_rows(rows, drawn), "parameters": model.num_parameters_},
            {"train_seconds": seconds, "sample_seconds": sampling},
            budget=budget(model),
        )


@lru_cache(maxsize=8)
def spin_glass(side: int, instance: int) -> Dataset:
    """Make an Edwards–Anderson instance once a process: its law takes longer than a small model."""
    from neurise.datasets.edwards_anderson import edwards_anderson

    return edwards_anderson(side=side, seed=instance)


def tv_against_rows(series: str, panel: str | None = None, caption: str = "") -> Figure:
    """Total variation against the number of rows, above its two floors."""
    return Figure("tv", "Total variation", ROWS, (TV,), series, panel, (MEMORISED, FLOOR), caption=caption)


def time_against_rows(series: str, panel: str | None = None, caption: str = "") -> Figure:
    """Training time against the number of rows."""
    return Figure("training_time", "Training time", ROWS, (SECONDS,), series, panel, times=True, caption=caption)


def tv_table(rows: str, *more: Column) -> Table:
    """Total variation and training time, a table for each number of rows."""
    columns = (Column(TV, "tv_floor"), Column(LAW_TV), *more, Column(SECONDS, times=True))
    return Table("summary", "By number of training rows", rows, columns, by="rows")
