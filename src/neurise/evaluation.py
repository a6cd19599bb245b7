r"""How good a fitted model is: a table of measurements, each beside what a perfect model would score.

**Adding a measurement.** Write a function ``measure(case: Case) -> Iterator[Measurement]`` and add it to
:data:`MEASURES`, or hand it to :func:`evaluate`. A :class:`Case` holds what they all need: the model, its samples, rows
to compare with, a second lot of rows for the floor, and the pmf where one is known. What does not apply yields nothing.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from neurise import exact as exactly
from neurise._case import Case
from neurise.alphabet import Alphabet, as_matrix
from neurise.dataset import Dataset
from neurise.metrics.cross_correlation import cross_correlation
from neurise.metrics.total_variation import total_variation as distance
from neurise.models.base import Model
from neurise.space import Space

__all__ = ["MEASURES", "Case", "Evaluation", "Measure", "Measurement", "evaluate"]

EXACT_LIMIT = 2**20
"""Configurations up to which the law of the model is written out without being asked for."""


@dataclass(frozen=True)
class Measurement:
    """One number, its standard error, and its floor: what a perfect model would score under the same conditions."""

    name: str
    value: float | None  # None where it could not be measured; the note says why
    error: float | None = None
    floor: float | None = None
    units: str = ""
    note: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Give the fields in JSON's types, which know no infinity: that becomes None, and the note tells of it."""
        return {key: None if isinstance(v, float) and not math.isfinite(v) else v for key, v in asdict(self).items()}


Measure = Callable[[Case], Iterator[Measurement]]


@dataclass(frozen=True)
class Evaluation:
    """The measurements of one model on one data set."""

    model: str
    data: str
    samples: int
    rows: tuple[Measurement, ...]

    def __getitem__(self, name: str) -> Measurement:
        """Return the measurement of a name."""
        for row in self.rows:
            if row.name == name:
                return row
        raise KeyError(f"{name!r} was not measured; there are: {', '.join(row.name for row in self.rows)}")

    def to_dict(self) -> dict[str, Any]:
        """Give everything in JSON's types."""
        return {**asdict(self), "rows": [row.to_dict() for row in self.rows]}


def total_variation(case: Case) -> Iterator[Measurement]:
    """Distance of the model's law from the data's: of the whole law where that can be written out, else of samples."""
    pmf, offers_law = case.pmf, hasattr(case.model, "conditionals")
    if case.exact and (pmf is None or not offers_law):
        lacking = f"the pmf of {case.data.name}" if pmf is None else f"the exact law of a {type(case.model).__name__}"
        raise ValueError(f"exact=True needs {lacking}, which is not known")
    if pmf is None:
        return
    small = max(case.model.space_.size, len(pmf)) <= EXACT_LIMIT
    if offers_law and (small if case.exact is None else case.exact):
        law = exactly.law(case.model).cpu().numpy()
        value = distance(case.in_order_of_data(law), pmf)
        yield Measurement("total_variation", value, floor=0.0, note="exact: the model's whole law against the pmf")
        return
    value = distance(case.drawn, pmf, alphabet=case.data.symbols)
    places = np.random.default_rng(case.seed).choice(len(pmf), case.samples, p=pmf / pmf.sum())
    floor = distance(np.bincount(places, minlength=len(pmf)) / case.samples, pmf)
    note = f"{case.samples:,} samples against the pmf; floor: as many exact samples"
    yield Measurement("total_variation", value, floor=floor, note=note)


def correlation_error(case: Case) -> Iterator[Measurement]:
    """Distance of the two-site correlations of samples from those of real rows."""
    if case.data.space.sites < 2:
        return
    first, second = case.real
    count = case.samples if second is None else min(case.samples, len(second))
    value = cross_correlation(case.drawn[:count], first)
    floor = None if second is None else cross_correlation(second[:count], first)
    note = f"{count:,} samples against {len(first):,} rows" + ("; floor: as many other rows" if floor else "")
    for kind in value._fields:
        perfect = None if floor is None else float(getattr(floor, kind))
        yield Measurement(f"correlation_{kind}", float(getattr(value, kind)), floor=perfect, note=note)


def likelihood(case: Case) -> Iterator[Measurement]:
    """Mean log-likelihood of the rows, or a lower bound on it; the floor is the score of the data's own law."""
    rows, model = case.rows, case.model
    labels = None if model.schema_.labels is None else rows.labels
    name, note = "log_likelihood", f"mean of {len(rows.X):,} rows" + ("" if labels is None else ", given their labels")
    try:
        values = model.log_prob(rows.X, labels)
    except NotImplementedError as reason:
        try:
            bound = model.elbo(rows.X, labels, seed=case.seed)
        except NotImplementedError:
            yield Measurement(name, None, units="nats", note=str(reason))
            return
        name, values = "elbo", bound.value
        noise = np.linalg.norm(rows.masses * bound.standard_error) / rows.masses.sum()
        note += f"; a lower bound on the log-likelihood, Monte Carlo error {noise:.1g}"
    impossible = int((values == -np.inf).sum())
    if impossible:
        note += f"; {impossible:,} rows have probability zero"
    mean, error = rows.mean(values)
    own = None if labels is not None else case.log_pmf(rows.X)
    floor = None if own is None else rows.mean(own)[0]
    yield Measurement(name, mean, error, floor, "nats", note)
    per_site = case.data.space.sites * math.log(2)
    yield Measurement(
        "bits_per_site",
        -mean / per_site,
        None if error is None else error / per_site,
        None if floor is None else -floor / per_site,
        "bits",
        "the same with the sign turned; lower is better",
    )


MEASURES: tuple[Measure, ...] = (total_variation, correlation_error, likelihood)


def evaluate(
    model: Model,
    data: Dataset | Any,
    *,
    samples: int = 10_000,
    seed: int = 0,
    exact: bool | None = None,
    measures: Sequence[Measure] = MEASURES,
) -> Evaluation:
    """Measure a fitted model against a data set, or against an (N, sites) array of symbols.

    Of a data set the test rows are used, else fresh rows of its law, else the rows that were learnt from. ``samples``
    rows are drawn from the model, and from the law of the data. The total variation distance is exact up to 2^20
    configurations, or where ``exact`` is True; ``exact=False`` takes samples instead.
    """
    if isinstance(samples, bool) or samples != int(samples) or samples < 1:
        raise ValueError(f"samples must be a positive whole number, got {samples!r}")
    known = data if isinstance(data, Dataset) else _as_dataset(data)
    case = Case(model, known, samples=int(samples), seed=seed, exact=exact)
    rows = tuple(row for measure in measures for row in measure(case))
    return Evaluation(repr(model), known.name, case.samples, rows)


def _as_dataset(data: Any) -> Dataset:
    rows = as_matrix(data, "data")
    symbols = Alphabet.of(rows).symbols
    return Dataset("the given rows", Space(rows.shape[1], len(symbols)), symbols, test=rows)
