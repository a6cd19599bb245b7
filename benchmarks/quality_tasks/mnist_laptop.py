"""MNIST by class, every method with its defaults and the same time to train: samples against random test digits.

A row gives MMD² and the mean error of correlations, averages over the classes, and what as many random training digits
score against the same test digits: the floor.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator

import numpy as np

import neurise
from neurise.experiments.mnist import reference
from quality_tasks._fit import Row, show

GROUP = "method"
METHODS = ("NeurISE", "GGM", "SEDD", "D3PM", "DFM")
HELD = 500
"""Test digits of each class to compare with; ``--draws`` of each are drawn, 100 where nobody says how many."""


def run(arguments: argparse.Namespace) -> Iterator[Row]:
    """Fit every method for ``--seconds``; the clock of a method that is not timed by itself stops with the patience."""
    data = neurise.datasets.mnist()
    for seed in arguments.seeds:
        held = {digit: reference(data, digit, HELD, seed) for digit in range(10)}
        for method in arguments.methods or METHODS:
            model = getattr(neurise, method)()
            model.fit(data.train, data.labels, seed=seed, verbose=False, **arguments.budget)
            show(model)
            scores, floors = [], []
            for digit, (test, train) in held.items():
                drawn = model.sample(arguments.draws, digit, seed=seed)
                scores.append(compared(drawn, test))
                floors.append(compared(train[: arguments.draws], test))
            (mmd, correlations), (mmd_floor, correlations_floor) = np.mean(scores, axis=0), np.mean(floors, axis=0)
            yield {
                "method": method,
                "seed": seed,
                "mmd": mmd,
                "mmd_floor": mmd_floor,
                "correlations": correlations,
                "correlations_floor": correlations_floor,
                "seconds": model.history_[-1]["seconds"] if model.history_ else 0.0,
            }


def compared(drawn: np.ndarray, test: np.ndarray) -> tuple[float, float]:
    """Return MMD² and the mean error of correlations."""
    mmd = neurise.metrics.mmd(drawn, test, alphabet=[0, 1])
    return float(mmd), float(neurise.metrics.cross_correlation(drawn, test, alphabet=[0, 1]).mean_abs)
