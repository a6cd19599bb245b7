"""Caltech silhouettes, 28×28 pixels, split at random by seed 0: the test likelihood, and samples against test rows."""

from __future__ import annotations

import argparse
from collections.abc import Iterator

import numpy as np

import neurise
from quality_tasks._fit import Row, fitted

TRAIN, VALIDATION = 4100, 2264


def run(arguments: argparse.Namespace) -> Iterator[Row]:
    """Fit the training rows; the validation rows are handed to ``fit`` as such."""
    train, validation, test = parts()
    for seed in arguments.seeds:
        model, seconds = fitted(arguments, seed, train, validation=validation, alphabet=[0, 1])
        nll = -model.log_prob(test).mean()
        samples = model.sample(len(test), seed=seed)
        error = neurise.metrics.cross_correlation(samples, test, other=train, alphabet=[0, 1]).mean_abs
        mmd = neurise.metrics.mmd(samples, test, alphabet=[0, 1])
        yield {
            "seed": seed,
            "nll": nll,
            "correlations": float(error),
            "over_floor": float(error) / error.floor,
            "mmd": float(mmd),
            "mmd_error": mmd.error,
            "seconds": seconds,
        }


def parts() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return 4,100 rows to learn from, 2,264 to validate and 2,307 to test."""
    X = neurise.datasets.caltech101_silhouettes().train
    X = X[np.random.default_rng(0).permutation(len(X))]
    return X[:TRAIN], X[TRAIN : TRAIN + VALIDATION], X[TRAIN + VALIDATION :]
