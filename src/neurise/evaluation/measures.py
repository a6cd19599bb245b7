"""Every metric that applies to a model and its data, each as a function of a :class:`Case` that yields measurements."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import numpy as np

from neurise import discovery
from neurise.evaluation.case import Case
from neurise.evaluation.measurement import Measure, Measurement
from neurise.metrics.chi2 import chi2
from neurise.metrics.coverage import coverage
from neurise.metrics.cross_correlation import cross_correlation
from neurise.metrics.elbo import elbo
from neurise.metrics.energy import energy
from neurise.metrics.fidelity import fidelity
from neurise.metrics.higher_correlation import higher_correlation
from neurise.metrics.kde import kde
from neurise.metrics.kl import kl
from neurise.metrics.log_likelihood import log_likelihood
from neurise.metrics.mmd import mmd
from neurise.metrics.nearest_neighbour import nearest_neighbour
from neurise.metrics.overlap import overlap
from neurise.metrics.privacy import Closeness
from neurise.metrics.total_variation import total_variation

PAIR_ROWS = 5000
"""Rows of a set that are compared in pairs with each other: the cost is their square."""
NEIGHBOUR_ROWS = 10_000
"""Samples whose nearest training row is looked for."""


def divergences(case: Case) -> Iterator[Measurement]:
    """Distances between the two laws: of the whole law where that can be written out, else of samples."""
    pmf = case.truth.pmf
    if pmf is None and not case.exact:
        return
    law = case.law
    known: dict[str, Any] = {} if law is not None else {"alphabet": case.data.symbols.tolist()}
    note = "exact: the model's whole law against the pmf"
    if law is None:
        note = f"{case.samples:,} samples against the pmf; floor: as many exact samples"
    for metric in (total_variation, kl, chi2):
        estimate = metric(case.drawn if law is None else law, pmf, **known)
        yield Measurement.of(metric.__name__, estimate, note + ("; of the model from the data" if metric is kl else ""))


def modes(case: Case) -> Iterator[Measurement]:
    """Share of the likely configurations that samples visit."""
    if case.truth.pmf is None:
        return
    covered = coverage(case.drawn, case.truth.pmf, alphabet=case.data.symbols.tolist())
    note = f"share of the likeliest configurations, 90 % of the mass, that {case.samples:,} samples visit"
    yield Measurement.of("coverage", covered.modes, note)


def correlations(case: Case) -> Iterator[Measurement]:
    """Distance of the correlations of two and three sites from those of real rows."""
    sites = case.data.space.sites
    if sites < 2:
        return
    options, reference = _options(case), case.truth.real[0]
    if not case.truth.independent:  # importances of the rows themselves say more than rows drawn by them
        reference, options["reference_weights"] = case.truth.rows.X, case.truth.rows.weights
    note = _note(case, len(reference))
    error = cross_correlation(case.drawn, reference, **options)
    for kind in error._fields:
        yield Measurement.of(f"correlation_{kind}", getattr(error, kind), note)
    edges = case.data.edges
    if edges is not None and 0 < len(edges) < sites * (sites - 1) // 2:
        on_couplers = cross_correlation(case.drawn, reference, couplers=edges, **options)
        yield Measurement.of("correlation_couplers", on_couplers.mean_abs, f"mean |ΔC| on the {len(edges):,} couplers")
    if sites > 2:
        triples = higher_correlation(case.drawn, reference, **options)
        yield Measurement.of("correlation_triples", triples.mean_abs, "mean |ΔC| over triples of sites")


def discrepancies(case: Case) -> Iterator[Measurement]:
    """Kernel distances and densities between samples and real rows; rows with importances have none."""
    first, second = (None if part is None else _some(part, PAIR_ROWS, case.seed) for part in case.truth.real)
    drawn, options = case.drawn[:PAIR_ROWS], {**_options(case), "other": second}
    if first is None or min(len(first), len(drawn)) < 2 or not case.truth.independent:
        return
    note = f"{len(drawn):,} samples against {len(first):,} rows"
    yield Measurement.of("mmd", mmd(drawn, first, **options), f"squared, the paper's kernel; {note}")
    hamming = mmd(drawn, first, kernel="exponential_hamming", **options)
    yield Measurement.of("mmd_hamming", hamming, f"squared, exponential in the Hamming distance; {note}")
    density = kde(drawn, first, **options)
    yield Measurement.of("kde", density.log_density, f"log-density of real rows under a kernel estimate; {note}")


def physics(case: Case) -> Iterator[Measurement]:
    """Energies where they are known, and the law of the overlap; rows with importances have none."""
    first, options = case.truth.real[0], _options(case)
    if min(len(first), case.samples) < 2 or not case.truth.independent:
        return
    if case.data.log_weight is not None and case.data.couplings is not None:
        found = energy(case.drawn, first, case.data.energy, **options)
        for kind in ("mean", "spread"):
            yield Measurement.of(f"energy_{kind}", getattr(found, kind), "of samples; floor: of real rows")
        yield Measurement.of("energy_distance", found.wasserstein, "between the two laws of energies (Wasserstein)")
    laws = overlap(case.drawn, first, **options)
    yield Measurement.of("overlap_distance", laws.wasserstein, "between the two laws of overlaps (Wasserstein)")


def memorisation(case: Case) -> Iterator[Measurement]:
    """How near samples are to the rows that were learnt from, beside rows that were not."""
    data = case.data
    if data.train is None or (data.test is None and data.draw is None):
        return
    drawn, held_out = case.drawn[:NEIGHBOUR_ROWS], case.truth.rows.observations()[0][:NEIGHBOUR_ROWS]
    training = data.train if data.weights is None else data.train[data.weights > 0]
    near = nearest_neighbour(drawn, training, held_out, alphabet=case.symbols)
    yield Measurement.of("nearest_distance", near.distance, "to the nearest training row; floor: of held-out rows")
    yield Measurement.of("copies", near.copies, "share of samples that are training rows; floor: of held-out rows")
    found = Closeness.of(near, data.space.sites)
    beyond = "of samples minus that of held-out rows; 0 where nothing was copied"
    yield Measurement.of("copies_beyond_chance", found.copies_beyond_chance, f"share of copies {beyond}")
    nearer = "share of sites by which samples are nearer to a training row than held-out rows are"
    yield Measurement.of("nearer_than_chance", found.nearer, f"{nearer}; 0 where nothing was copied")


def likelihood(case: Case) -> Iterator[Measurement]:
    """Mean log-likelihood of the rows, or a lower bound on it; the floor is the score of the data's own law."""
    rows, model = case.truth.rows, case.model
    if model is None:
        return
    labels = None if model.schema_.labels is None else rows.labels
    note = f"mean of {len(rows.X):,} rows" + ("" if labels is None else ", given their labels")
    options: dict[str, Any] = {"weights": rows.weights}
    if labels is None:
        options["pmf_log_prob"] = case.truth.log_pmf(rows.X)
    name = "log_likelihood"
    try:
        found: Any = log_likelihood(model, rows.X, labels, **options)
    except NotImplementedError as reason:
        try:
            found = elbo(model, rows.X, labels, seed=case.seed, **options)
        except NotImplementedError:
            yield Measurement(name, None, units="nats", note=str(reason))
            return
        name = "elbo"
        note += f"; a lower bound on the log-likelihood, Monte Carlo error {found.monte_carlo:.1g}"
    if found.impossible:
        note += f"; {found.impossible:,} rows have probability zero"
    yield Measurement.of(name, found.nats, note)
    yield Measurement.of("bits_per_site", found.bits_per_site, "the same with the sign turned; lower is better")


def fidelities(case: Case) -> Iterator[Measurement]:
    """Overlap of the two laws, Σ√(PQ), where both give the probability of a row."""
    rows = case.truth.real[0]
    log_p = None if case.model is None or case.data.draw is None else case.truth.log_pmf(rows)
    if log_p is None:
        return
    try:
        classical = fidelity(case.model, rows, log_p).classical
    except NotImplementedError:
        return
    yield Measurement.of("fidelity", classical, f"Σ√(PQ), by {len(rows):,} rows of the law")


MEASURES: tuple[Measure, ...] = (
    divergences,
    modes,
    correlations,
    discrepancies,
    physics,
    memorisation,
    likelihood,
    fidelities,
)


def measures_of_others() -> Iterator[Measure]:
    """Yield the functions ``measure(case)`` that stand beside metrics of other packages."""
    for name in discovery.names("neurise.metrics"):
        module = sys.modules[discovery.find("neurise.metrics", name).__module__]
        if not module.__name__.startswith("neurise.metrics.") and hasattr(module, "measure"):
            yield module.measure


def _options(case: Case) -> dict[str, Any]:
    """Give what the metrics of samples against rows take: the second lot of rows, the seed, and all symbols there are."""
    return {"other": case.truth.real[1], "seed": case.seed, "alphabet": case.symbols}


def _note(case: Case, rows: int) -> str:
    floor = "; floor: other real rows" if case.truth.real[1] is not None else ""
    return f"{case.samples:,} samples against {rows:,} rows{floor}"


def _some(rows: np.ndarray, n: int, seed: int) -> np.ndarray:
    if len(rows) <= n:
        return rows
    return rows[np.random.default_rng(seed).choice(len(rows), n, replace=False)]
