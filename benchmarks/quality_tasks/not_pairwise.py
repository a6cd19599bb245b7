"""Exact total variation over that of memorising where the truth is not pairwise: plaquettes, hypergraphs, hidden spins."""

from __future__ import annotations

import argparse
from collections.abc import Iterator

import torch

import neurise
from neurise.laws import distance
from quality_tasks._fit import Row, fitted

GROUP = "law"
LAWS = {
    "plaquette": lambda seed: neurise.datasets.plaquette(side=4, seed=seed),
    "hypergraph": lambda seed: neurise.datasets.hypergraph(sites=16, seed=seed),
    "hidden_spins": lambda seed: neurise.datasets.hidden_spins(side=5, seed=seed, sampler="exact"),
}
"""16, 16 and 17 visible spins."""


def run(arguments: argparse.Namespace) -> Iterator[Row]:
    """Fit the same rows in every run: they are drawn by the number of the instance."""
    for name, make in LAWS.items():
        for size in arguments.sizes:
            for instance in arguments.instances:
                data = make(instance)
                X = data.sample(size, seed=1000 + instance)
                model, seconds = fitted(arguments, instance, X, alphabet=[-1, 1])
                pmf = torch.from_numpy(data.pmf).to(arguments.device)
                yield {
                    "law": f"{name}, {size:,} rows",
                    "seed": instance,
                    "tv": distance(neurise.exact.law(model).to(pmf.device), pmf),
                    "memorising": float(neurise.metrics.total_variation(X, data.pmf, alphabet=[-1, 1])),
                    "seconds": seconds,
                }
