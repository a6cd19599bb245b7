"""The protein family PF00014: connected two-site correlations of samples against those of held-back sequences, and likelihood.

A correlation of correlations between training and held-back sequences is what can be reached: figures are given over it.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np

import neurise
from quality_tasks._fit import Row, fitted

DRAWS = 10_000


def run(arguments: argparse.Namespace) -> Iterator[Row]:
    """Fit four fifths of the sequences, split at random by the seed."""
    for seed in arguments.seeds:
        train, test, symbols = parts(seed)
        model, seconds = fitted(arguments, seed, train, alphabet=symbols)
        reached, possible = agreement(model.sample(DRAWS, seed=seed), test, symbols), agreement(train, test, symbols)
        yield {
            "seed": seed,
            "nll": -model.log_prob(test).mean(),
            "pearson": reached,
            "over_training": reached / possible,
            "seconds": seconds,
        }


def parts(seed: int) -> tuple[np.ndarray, np.ndarray, list[str]]:
    """Return sequences to learn from, those held back, and the symbols."""
    folder = Path(os.environ["NEURISE_DATA"])
    data = neurise.datasets.files(folder / "msa" / "PF00014_mgap6.fasta.gz")
    X = data.train[np.random.default_rng(seed).permutation(len(data.train))]
    held = len(X) // 5
    return X[held:], X[:held], data.symbols.tolist()


def agreement(first: np.ndarray, second: np.ndarray, symbols: list[str]) -> float:
    r"""Return Pearson's correlation of :math:`P_{ij}(a, b) - P_i(a) P_j(b)`, i < j, all symbols a and b."""
    found = [connected(rows, symbols) for rows in (first, second)]
    return float(np.corrcoef(*found)[0, 1])


def connected(rows: np.ndarray, symbols: list[str]) -> np.ndarray:
    """Return the connected two-site correlations of all pairs i < j, flat."""
    sites, states = rows.shape[1], len(symbols)
    hot = (rows[..., None] == np.array(symbols)).reshape(len(rows), -1).astype(np.float64)
    mean = hot.mean(0)
    square = (hot.T @ hot / len(rows) - np.outer(mean, mean)).reshape(sites, states, sites, states)
    i, j = np.triu_indices(sites, 1)
    flat: np.ndarray = square[i, :, j].ravel()
    return flat
