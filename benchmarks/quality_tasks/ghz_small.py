"""GHZ states of four qubits with visibility 0.9: the quantum fidelity of what a model has learnt from 20,000 outcomes."""

from __future__ import annotations

import argparse
from collections.abc import Iterator

import numpy as np
import torch

import neurise
from neurise.laws import distance
from neurise.povm import ghz_fidelity
from quality_tasks._fit import Row, fitted

ROWS, VISIBILITY = 20_000, 0.9


def added(configurations: np.ndarray) -> np.ndarray:
    """Return what each configuration adds to the fidelity, (n,): that is the mean of it over the law."""
    pairs = np.repeat(configurations[:, None], 2, axis=1)  # two equal rows, since one has no standard error
    return np.array([float(ghz_fidelity(pair, max_error=np.inf).value) for pair in pairs])


def run(arguments: argparse.Namespace) -> Iterator[Row]:
    """Fit each sample; the fidelities are those of the law that was learnt, of the rows themselves, and of fresh rows."""
    data = neurise.datasets.ghz(4, visibility=VISIBILITY)
    truth, adds = torch.from_numpy(np.asarray(data.pmf)), added(data.space.configurations().numpy())
    for seed in arguments.seeds:
        rows, fresh = data.sample(ROWS, seed=seed), data.sample(ROWS, seed=1000 + seed)
        model, seconds = fitted(arguments, seed, rows, alphabet=data.symbols.tolist())
        law = neurise.exact.law(model).cpu()
        often = torch.bincount(data.space.index(torch.from_numpy(rows).long()), minlength=data.space.size) / ROWS
        new = ghz_fidelity(fresh)
        yield {
            "seed": seed,
            "fidelity": float(adds @ law.numpy()),
            "of_the_rows": float(adds @ often.double().numpy()),
            "of_fresh_rows": float(new.value),
            "standard_error": float(new.standard_error),
            "true": float(adds @ truth.numpy()),
            "tv": distance(law, truth),
            "memorising": distance(often, truth),
            "seconds": seconds,
        }
