"""MNIST by class: 1000 generated digits of each class against all test digits, and the test likelihood."""

from __future__ import annotations

import argparse
from collections.abc import Iterator

import numpy as np

import neurise
from quality_tasks._fit import Row, fitted


def run(arguments: argparse.Namespace) -> Iterator[Row]:
    """Fit all digits with their labels."""
    data = neurise.datasets.mnist()
    for seed in arguments.seeds:
        model, seconds = fitted(arguments, seed, data.train, data.labels)
        nll = -model.log_prob(data.test, data.test_labels).mean()
        scores = []
        for digit in range(10):
            drawn = model.sample(1000, digit, seed=seed)
            real = data.test[data.test_labels == digit]
            discrepancy = neurise.metrics.mmd(drawn, real, alphabet=[0, 1])
            scores.append((discrepancy, neurise.metrics.cross_correlation(drawn, real, alphabet=[0, 1]).mean_abs))
        mmd, correlations = np.mean(np.array(scores, dtype=float), axis=0)
        yield {"seed": seed, "nll": nll, "mmd": mmd, "correlations": correlations, "seconds": seconds}
