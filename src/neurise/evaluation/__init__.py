r"""How good a fitted model is: a table of measurements, each beside what a perfect model would score.

**Adding a measurement.** Write a function ``measure(case: Case) -> Iterator[Measurement]`` and add it to
:data:`MEASURES`, or hand it to :func:`evaluate`. A metric of another package (an entry point of the group
``neurise.metrics``) takes part by a function of that name and kind, ``measure``, in its file. A :class:`Case` holds what they
all need: the model, its samples, rows to compare with, a second lot of rows for the floor, and the pmf where one is known.
What does not apply yields nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import torch

from neurise import checks, devices, discovery, holdings
from neurise.alphabet import Alphabet, as_array, as_matrix
from neurise.columns import Columns
from neurise.dataset import Dataset
from neurise.evaluation.case import Case, Truth
from neurise.evaluation.learnt_from import with_training_rows
from neurise.evaluation.measurement import Measure, Measurement
from neurise.evaluation.measures import MEASURES, measures_of_others
from neurise.evaluation.table import frame, html, written
from neurise.evaluation.tables import columns_of, complete, on_tokens, table_set
from neurise.evaluation.unseen import described, held_back
from neurise.frames import Table, frame_kind
from neurise.modeling.model import Model
from neurise.space import MAX_STATES, Space

__all__ = [
    "BASELINES",
    "MAX_STATES",
    "MEASURES",
    "Case",
    "Columns",
    "Evaluation",
    "Measure",
    "Measurement",
    "as_array",
    "evaluate",
]

BASELINES = ("independent", "memorize")
"""Models that any other should beat, by the names of their files."""


@dataclass(frozen=True)
class Evaluation:
    """The measurements of one model on one data set."""

    model: str
    data: str
    samples: int
    rows: tuple[Measurement, ...]
    baselines: str  # what the baselines were learnt from; empty where there are none
    against: str  # which rows the model was measured on
    case: Case = field(repr=False, compare=False)  # what was compared, for figures

    def __getitem__(self, name: str) -> Measurement:
        """Return the measurement of a name."""
        for row in self.rows:
            if row.name == name:
                return row
        raise KeyError(f"{name!r} was not measured; there are: {', '.join(row.name for row in self.rows)}")

    def __repr__(self) -> str:
        few = [f"{row.name} {written(row)}" for row in self.rows[:3]]
        more = [f"{len(self.rows) - 3} more"] if len(self.rows) > 3 else []
        return f"Evaluation({self.model} on {self.data}: {', '.join(few + more)})"

    def _repr_html_(self) -> str:
        return html(self)

    def to_frame(self, backend: str = "pandas") -> Any:
        """Make a data frame of it, one row per measurement: of "pandas", "polars", "pyarrow" or what narwhals knows else."""
        return frame(self, backend)

    def to_dict(self) -> dict[str, Any]:
        """Give everything in JSON's types."""
        return {
            "model": self.model,
            "data": self.data,
            "samples": self.samples,
            "baselines": self.baselines,
            "against": self.against,
            "rows": [row.to_dict() for row in self.rows],
        }


def evaluate(
    model: Model | Any,
    data: Dataset | Any,
    *,
    train: Dataset | Any = None,
    samples: int = 10_000,
    seed: int = 0,
    exact: bool | None = None,
    baselines: bool = True,
    measures: Sequence[Measure] | None = None,
) -> Evaluation:
    """Measure a fitted model, or samples (n, sites) from anywhere, against a data set or an (N, sites) array of symbols.

    Of a data set the test rows are used, else fresh rows of its law, else its training rows. Where ``neurise train`` held rows
    of the same data back, those are used; where the model has learnt from the very rows, a warning says so. ``samples``
    rows are drawn from the model, and from the law of the data. Distances between laws are exact up to 2^20
    configurations, or where ``exact`` is True; ``exact=False`` takes samples instead. Beside each number stand those of
    the product of the marginals and of the memorised training rows, unless ``baselines`` is False.

    ``train`` are the rows that the model learnt from, where the data do not come with them: they tell whether it copies rows
    (``copies_beyond_chance``, ``nearer_than_chance``; :func:`neurise.metrics.privacy`).

    >>> import neurise
    >>> data = neurise.datasets.edwards_anderson(side=2, seed=0)
    >>> model = neurise.Independent().fit(data.sample(500, seed=0))
    >>> found = neurise.evaluate(model, data, samples=200, baselines=False)
    >>> found['total_variation'].value > 0.1                     # spins of a glass are not independent
    True
    """
    if isinstance(samples, bool) or samples != int(samples) or samples < 1:
        raise ValueError(f"samples must be a positive whole number, got {samples!r}")
    checks.flag("baselines", baselines)
    if exact is not None:
        checks.flag("exact", exact)
    text = repr(model) if hasattr(model, "sample") else "the given samples"
    known = data if isinstance(data, Dataset) else _as_dataset(data, model)
    needed = devices.sampling_bytes(int(samples), known.space.sites, known.symbols.itemsize)
    devices.require_memory(needed, torch.device("cpu"), f"draw fewer than samples={int(samples):,} rows")
    options: dict[str, Any] = {"samples": int(samples), "seed": seed, "exact": exact}
    again = held_back(model, known)
    known = known if again is None else again
    if train is not None:
        known = with_training_rows(
            model, known, train if isinstance(train, Dataset) else _as_dataset(train, model, "train")
        )
    against = described(model, Truth(known, samples=int(samples), seed=seed), again is not None)
    columns, measured = columns_of(model, known), model
    if columns is not None:
        measured, known = on_tokens(model, known, columns)
    case = Case(measured, known, **options)
    measures = (*MEASURES, *measures_of_others()) if measures is None else measures
    rows = tuple(row for measure in measures for row in measure(case))
    learnable = case.truth.learnable if baselines else None
    if learnable is not None:
        learnt, _ = learnable
        scores: dict[str, dict[str, float | None]] = {}
        for name in BASELINES:
            kind = discovery.find("neurise.models", name)
            fitted = kind(alphabet=known.symbols.tolist()).fit(learnt.X, weights=learnt.weights, seed=seed)
            own = Case(fitted, known, **{**options, "samples": case.samples, "exact": exact or None}, truth=case.truth)
            scores[name] = {row.name: row.value for measure in measures for row in measure(own)}
        # A model's bound stands beside the exact likelihood of the baselines.
        key = {"elbo": "log_likelihood"}
        rows = tuple(
            replace(row, baselines={name: scores[name].get(key.get(row.name, row.name)) for name in BASELINES})
            for row in rows
        )
    return Evaluation(text, known.name, case.samples, rows, "" if learnable is None else learnable[1], against, case)


def _as_dataset(data: Any, model: Any, what: str = "data") -> Dataset:
    known = getattr(getattr(model, "schema_", None), "alphabet", None)
    if isinstance(known, Columns) and not frame_kind(data):
        data = Table(as_array(data, what), known.names)  # without names, columns are told by their places
    if frame_kind(data) and not isinstance(known, Alphabet):
        return table_set(data)
    held = holdings.opened(data, what, sites=getattr(getattr(model, "space_", None), "sites", None))
    held = complete(held, what)
    rows, more = as_matrix(held.X, what), {"test_labels": held.y, "test_weights": held.weights}
    symbols = Alphabet.of(rows).symbols
    return Dataset("the given rows", Space(rows.shape[1], len(symbols)), symbols, test=rows, **more)
