"""Steps that experiments share: to train, to sample, to compare. All of them are functions of seeds that are given."""

from __future__ import annotations

import time
import warnings
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache
from typing import Any

import numpy as np
import torch

from neurise import exact
from neurise.dataset import Dataset
from neurise.laws import distance
from neurise.metrics.cross_correlation import cross_correlation
from neurise.metrics.kl import kl
from neurise.metrics.total_variation import total_variation
from neurise.modeling.model import Model
from neurise.training.loop import TrainingDiverged

TOGETHER = 2**16
"""Rows that are drawn from a model at a time."""

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
    max_steps: int | None,
) -> tuple[list[Model], float]:
    """Fit models of equal settings to data of equal shape as one batched computation; return the seconds for each."""
    from neurise.modeling.many import fit_many

    _load_once()
    began = time.perf_counter()
    fitted = list(fit_many(models, sets, labels, seeds=seeds, device=device, max_steps=max_steps, verbose=False))
    if any(model.stopped_ == "interrupted" for model in fitted):
        raise KeyboardInterrupt
    return fitted, (time.perf_counter() - began) / len(models)


def draw(model: Model, n: int, seed: int) -> tuple[np.ndarray, float]:
    """Draw rows, (n, sites); return the seconds it took as well."""
    began = time.perf_counter()
    sizes = [min(TOGETHER, n - start) for start in range(0, n, TOGETHER)]
    parts = [np.asarray(model.sample(size, seed=derived(seed, part))) for part, size in enumerate(sizes)]
    return np.concatenate(parts), time.perf_counter() - began


def against_law(model: Model, data: Dataset, rows: np.ndarray, drawn: np.ndarray, *, exactly: bool) -> Metrics:
    """Total variation of the samples, with its floor; of the rows that were learnt from; and of the model's whole law.

    Of that also the Kullback–Leibler divergence from the truth, in nats.
    """
    symbols = data.symbols.tolist()
    sampled = total_variation(drawn, data.pmf, alphabet=symbols)
    whole, divergence = None, None
    if exactly:
        with suppress(NotImplementedError):
            law = exact.law(model)
            whole = distance(law, torch.from_numpy(data.pmf).to(law.device))
            divergence = float(kl(data.pmf, law))
    return {
        "tv": float(sampled),
        "tv_floor": sampled.floor,
        "memorised_tv": float(total_variation(rows, data.pmf, alphabet=symbols)),
        "exact_tv": whole,
        "exact_kl": divergence,
    }


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
