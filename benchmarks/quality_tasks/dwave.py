"""Reads of a D-Wave Advantage, split at random: correlations over its couplers, mean energy, MMD²."""

from __future__ import annotations

import argparse
from collections.abc import Iterator

import neurise
from quality_tasks._fit import Row, fitted


def run(arguments: argparse.Namespace) -> Iterator[Row]:
    """Fit three quarters of the reads of each split; with ``--graph`` the model is told the couplers."""
    for seed in arguments.seeds:
        data = neurise.datasets.dwave(arguments.source, test_fraction=0.25, seed=seed)
        graph = {"graph": data.edges} if arguments.graph else {}
        model, seconds = fitted(arguments, seed, data.train, weights=data.weights, settings=graph)
        drawn = model.sample(arguments.draws, seed=seed)
        couplers = neurise.metrics.cross_correlation(drawn, data.test, couplers=data.edges, other=data.train).mean_abs
        energy = neurise.metrics.energy(drawn, data.test, data.energy)
        mmd = neurise.metrics.mmd(drawn, data.test)
        yield {
            "seed": seed,
            "couplers": float(couplers),
            "couplers_floor": couplers.floor,
            "energy": float(energy.mean),
            "off_by": abs(float(energy.mean) - float(energy.reference_mean)),
            "mmd": float(mmd),
            "mmd_error": mmd.error,
            "nll": -float(model.log_prob(data.test[:2000]).mean()) if model.keep_prob == 0 else None,
            "seconds": seconds,
        }
