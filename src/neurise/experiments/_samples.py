"""Experiments about data whose law is not known: learn from rows, and compare samples with rows that were held back."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from neurise.experiments._methods import limits, trainable
from neurise.experiments.base import Cell, Experiment, Outcome, Scalar
from neurise.experiments.parts.samples import REAL

if TYPE_CHECKING:
    import numpy as np

    from neurise.dataset import Dataset
    from neurise.modeling.model import Model


class Prepared(NamedTuple):
    """The data of a cell, the rows to learn from, and the model; None where real rows take its place."""

    data: Dataset
    rows: np.ndarray
    labels: np.ndarray | None
    model: Model | None


class SampleExperiment(Experiment):
    """Trains on rows, draws from the model, and compares. It writes ``prepared`` and ``judged``."""

    any_model = True

    @abstractmethod
    def prepared(self, cell: Cell) -> Prepared:
        """Return the rows and the untrained model of a cell."""

    @abstractmethod
    def judged(self, cell: Cell, prepared: Prepared, times: dict[str, float]) -> Outcome:
        """Draw from the trained model, and compare."""

    def run(self, cell: Cell, device: str | None) -> Outcome:
        """Train and compare one model."""
        from neurise.experiments._measure import train

        own, times = self.prepared(cell), dict[str, float]()
        if own.model is not None:
            given = {"seed": cell.seed, "device": device, **limits(cell.parameters)}
            times["train_seconds"] = train(own.model, own.rows, own.labels, **given)
        return self.judged(cell, own, times)

    def run_group(self, cells: Sequence[Cell], device: str | None) -> list[Outcome]:
        """Train all models together; compare one after the other."""
        from neurise.experiments._measure import train_together

        every = [self.prepared(cell) for cell in cells]
        models: list[Any] = [own.model for own in every]
        labels = None if every[0].labels is None else [own.labels for own in every]
        sets, seeds = [own.rows for own in every], [cell.seed for cell in cells]
        limit = limits(cells[0].parameters)
        fitted, seconds = train_together(models, sets, seeds, labels=labels, device=device, **limit)
        times = {"train_seconds": seconds}
        return [
            self.judged(cell, own._replace(model=model), dict(times))
            for cell, own, model in zip(cells, every, fitted, strict=True)
        ]

    def groupable(self, parameters: Mapping[str, Scalar]) -> bool:
        """Whether the method trains a network."""
        return parameters["method"] != REAL and trainable(str(parameters["method"]))
