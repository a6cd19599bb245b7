"""KL divergence per spin on open 10×10 lattices, J = ±1.2, h = ±0.05, of which log Z and fresh rows are exact."""

from __future__ import annotations

import argparse
from collections.abc import Iterator

import numpy as np

import neurise
from neurise.datasets._pairwise.lattice import square_lattice
from quality_tasks._fit import Row, fitted

GROUP = "rows"
SIDE = 10
FRESH = 20_000
"""Rows that the divergence is an average over; its standard error is given."""


def lattice(seed: int, side: int = SIDE) -> neurise.Dataset:
    """Make an instance: couplings first, then fields, as :func:`neurise.datasets.edwards_anderson` draws them."""
    edges = square_lattice(side, wraps=False)
    rng = np.random.default_rng(seed)
    couplings, fields = rng.choice([-1.2, 1.2], len(edges)), rng.choice([-0.05, 0.05], side * side)
    return neurise.datasets.ising(edges, couplings, fields, shape=(side, side))


def run(arguments: argparse.Namespace) -> Iterator[Row]:
    """Fit; the divergence is E_μ[log μ − log model], with μ exact by elimination."""
    for size in arguments.sizes:
        for instance in arguments.instances:
            data = lattice(instance)
            model, seconds = fitted(arguments, instance, data.sample(size, seed=1000 + instance), alphabet=[-1, 1])
            fresh = data.sample(FRESH, seed=2000 + instance)
            excess = -data.energy(fresh) - data.info["log_z"] - np.asarray(model.log_prob(fresh), dtype=float)
            yield {
                "rows": size,
                "seed": instance,
                "kl_per_spin": float(excess.mean()) / data.space.sites,
                "standard_error": float(excess.std(ddof=1)) / FRESH**0.5 / data.space.sites,
                "seconds": seconds,
            }
