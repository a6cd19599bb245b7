"""Steps that experiments share: to train, to sample, to compare. All of them are functions of seeds that are given."""

from __future__ import annotations

import time
import warnings
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache, lru_cache
from typing import Any

import numpy as np
import torch

from neurise import exact
from neurise.dataset import Dataset
from neurise.laws import distance
from neurise.metrics.cross_correlation import cross_correlation
from neurise.metrics.kl import kl
from neurise.metrics.likelihood_ratio import likelihood_ratio
from neurise.metrics.total_variation import total_variation
from neurise.modeling.model import Model
from neurise.training.loop import TrainingDiverged

TOGETHER = 2**16
"""Rows that are drawn from a model at a time."""
WRITTEN_OUT = 2**16
"""Configurations up to which the law of a model is written out."""
FRESH = 100_000
"""Rows of the truth that distances of larger laws are means over."""

Metrics = dict[str, float | None]


def derived(*numbers: int) -> int:
    """Mix several numbers to one seed, so that no two uses share their random numbers."""
    return int(np.random.SeedSequence(numbers).generate_state(1, np.uint64)[0] >> np.uint64(1))


@cache
def _load_once() -> None:
    """Load what the first optimiser of a process loads, which takes seconds, so that no training time holds it."""
    torch.optim.Adam([torch.nn.Parameter(torch.zeros(1))])


def train(model: Model, X: np.ndarray, y: Any = None, **options: Any) -> float:
    """Fit a model; return the seconds it took. What Ctrl-C cut short is no result.

    A model that diverges keeps its last good weights, and a warning says so, as in a group: its cell is finished all the same.
    """
    _load_once()
    began = time.perf_counter()
    try:
        model.fit(X, y, verbose=False, **options)
    except TrainingDiverged as error:
        warnings.warn(f"diverged: {error}", stacklevel=2)
    if model.stopped_ == "interrupted":
        raise KeyboardInterrupt
    return time.perf_counter() - began


def train_together(
    models: Sequence[Model],
    sets: Sequence[np.ndarray],
    seeds: Sequence[int],
    *,
    labels: Sequence[Any] | None = None,
    device: str | None,
    max_steps: int | None = None,
    max_seconds: float | None = None,
) -> tuple[list[Model], float]:
    """Fit models of equal settings to data of equal shape as one batched computation; return the seconds for each."""
    from neurise.modeling.many import fit_many

    _load_once()
    began = time.perf_counter()
    limits: dict[str, Any] = {"max_steps": max_steps, "max_seconds": max_seconds}
    fitted = list(fit_many(models, sets, labels, seeds=seeds, device=device, verbose=False, **limits))
    if any(model.stopped_ == "interrupted" for model in fitted):
        raise KeyboardInterrupt
    return fitted, (time.perf_counter() - began) / len(models)


def draw(model: Model, n: int, seed: int) -> tuple[np.ndarray, float]:
    """Draw rows, (n, sites); return the seconds it took as well."""
    began = time.perf_counter()
    sizes = [min(TOGETHER, n - start) for start in range(0, n, TOGETHER)]
    parts = [np.asarray(model.sample(size, seed=derived(seed, part))) for part, size in enumerate(sizes)]
    return np.concatenate(parts), time.perf_counter() - began


def against_law(model: Model, data: Dataset, rows: np.ndarray, drawn: np.ndarray) -> Metrics:
    """Total variation of the samples, with its floor, and of the rows that were learnt from."""
    symbols, law = data.symbols.tolist(), law_on(data, model.device_)
    sampled = total_variation(drawn, law, alphabet=symbols)
    return {
        "tv": float(sampled),
        "tv_floor": sampled.floor,
        "memorised_tv": float(total_variation(rows, law, alphabet=symbols)),
    }


@lru_cache(maxsize=8)
def law_on(data: Dataset, device: torch.device) -> torch.Tensor:
    """Return the law of a data set on a device; cells of one process share it."""
    return torch.from_numpy(np.asarray(data.pmf)).to(device)


def of_law(model: Model, data: Dataset, seed: int) -> Metrics:
    """Distances of the law of a model that has an exact likelihood, in total variation and nats, with their errors.

    On small spaces the whole law is written out, and there is no error. Elsewhere they are means over fresh rows
    (:func:`neurise.metrics.likelihood_ratio`), which have no floor.
    """
    found: Metrics = dict.fromkeys(("law_tv", "law_tv_error", "law_kl", "law_kl_error"))
    truth = law_on(data, model.device_)
    if data.space.size <= WRITTEN_OUT:
        with suppress(NotImplementedError):
            law = exact.law(model).to(truth.device)
            found |= {
                "law_tv": distance(law, truth),
                "law_tv_error": 0.0,
                "law_kl": float(kl(truth, law)),
                "law_kl_error": 0.0,
            }
    elif model.has_likelihood:
        fresh = data.sample(FRESH, seed=seed)
        place = data.space.index(torch.from_numpy(np.searchsorted(data.symbols, fresh)))
        own = likelihood_ratio(model.log_prob(fresh), truth[place.to(truth.device)].log().cpu())
        for name, value in (("law_tv", own.total_variation), ("law_kl", own.kl)):
            found |= {name: float(value), f"{name}_error": value.error}
    return found


def correlation(drawn: np.ndarray, reference: np.ndarray, other: np.ndarray | None, symbols: Sequence[Any]) -> Metrics:
    """Errors of the pair correlations, averaged in each of the three ways, with the floor of the first."""
    found = cross_correlation(drawn, reference, other=other, alphabet=list(symbols))
    return {
        "correlation": float(found.mean_abs),
        "correlation_floor": found.mean_abs.floor,
        "correlation_rms": float(found.rms),
        "correlation_frobenius": float(found.frobenius),
    }


def budget(model: Model) -> dict[str, str | int | float | bool | None]:
    """Say what a model was trained with: its last step, rows a step, size, loss and learning rate, and what ended it."""
    given, chosen = model.get_params(), getattr(model, "chosen_", None)
    found: dict[str, Any] = {name: given[name] for name in ("width", "depth", "loss") if name in given}
    found["learning_rate"] = getattr(chosen, "learning_rate", given.get("training__learning_rate"))
    found["batch_size"] = getattr(chosen, "batch_size", given.get("training__batch_size"))
    history = getattr(model, "history_", None)
    found["steps"] = history[-1]["step"] if history else None
    found["stopped"] = model.stopped_
    known = str | int | float | None
    return {name: entry for name, entry in found.items() if isinstance(entry, known) and entry is not None}


def used_rows(rows: np.ndarray, drawn: np.ndarray, held: np.ndarray | None = None) -> Metrics:
    """Say how many rows were learnt from, how many were drawn, and with how many real rows these were compared."""
    compared = {} if held is None else {"compared_with": len(held)}
    return {"learnt_from": len(rows), "drawn": len(drawn), **compared}


def mean_of(parts: Sequence[Mapping[str, float | None]]) -> Metrics:
    """Average each number over classes; what one class lacks is not averaged."""
    names = parts[0].keys()
    columns = {name: [part[name] for part in parts] for name in names}
    return {
        name: None if any(entry is None for entry in column) else float(np.mean(np.array(column, dtype=float)))
        for name, column in columns.items()
    }
