"""GHZ states of twenty qubits: correlations over their floor, and the classical fidelity."""

from __future__ import annotations

import argparse
from collections.abc import Iterator

import neurise
from quality_tasks._fit import Row, fitted


def run(arguments: argparse.Namespace) -> Iterator[Row]:
    """Fit 10⁵ outcomes."""
    data = neurise.datasets.ghz(20)
    symbols = data.symbols.tolist()
    for seed in arguments.seeds:
        model, seconds = fitted(arguments, seed, data.sample(10**5, seed=seed), alphabet=symbols)
        fresh, other = (data.sample(10**5, seed=100 + 2 * seed + k) for k in (0, 1))
        drawn = model.sample(10**5, seed=seed)
        error = neurise.metrics.cross_correlation(drawn, fresh, other=other, alphabet=symbols).mean_abs
        fidelity = neurise.metrics.fidelity(model, fresh, data.log_weight).classical
        yield {
            "seed": seed,
            "correlations": float(error),
            "over_floor": float(error) / error.floor,
            "fidelity": float(fidelity),
            "seconds": seconds,
        }
