"""Exact total variation on small spaces, from 10 rows to 10⁵, against that of memorising the same rows."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from functools import reduce

import numpy as np
import torch

import neurise
from neurise.dataset import Dataset
from neurise.laws import distance
from neurise.space import Space
from quality_tasks._fit import Row, fitted

GROUP = "case"

Law = tuple[Space, np.ndarray]


def of(data: Dataset) -> Law:
    """Return the space and the law of a data set."""
    return data.space, np.asarray(data.pmf)


def two_by_three() -> Law:
    """An Ising model on an open lattice of 2 × 3 spins, with couplings of ±1 and fields of 0.1."""
    edges = [(0, 1), (1, 2), (3, 4), (4, 5), (0, 3), (1, 4), (2, 5)]
    couplings = np.random.default_rng(0).choice([-1.0, 1.0], len(edges))
    return of(neurise.datasets.ising(edges, couplings, 0.1))


def product() -> Law:
    """Five independent sites with laws of their own."""
    laws = np.random.default_rng(0).dirichlet([1.0] * 3, 5)
    return Space(5, 3), reduce(np.multiply.outer, laws).ravel()


def uniform() -> Law:
    """Five sites that hold anything."""
    return Space(5, 3), np.full(3**5, 3.0**-5)


def rough() -> Law:
    """A law in which nothing depends on anything in a simple way: what there is to know is every single probability."""
    return Space(5, 3), np.random.default_rng(0).dirichlet([0.5] * 3**5)


LAWS: dict[str, Callable[[], Law]] = {
    "potts_2x2": lambda: of(neurise.datasets.potts(side=2)),
    "potts_3x3": lambda: of(neurise.datasets.potts(side=3)),
    "ising_2x3": two_by_three,
    "spin_glass_4x4": lambda: of(neurise.datasets.edwards_anderson(side=4)),
    "ghz_4": lambda: of(neurise.datasets.ghz(4, visibility=0.9)),
    "product": product,
    "uniform": uniform,
    "rough": rough,
}


def run(arguments: argparse.Namespace) -> Iterator[Row]:
    """Fit every sample, numbered by its seed, and write out the law that was learnt."""
    for name in arguments.laws or LAWS:
        space, pmf = LAWS[name]()
        truth, x = torch.from_numpy(pmf), space.configurations().numpy()
        for size in arguments.sizes:
            for seed in arguments.seeds:
                places = np.random.default_rng([seed, size]).choice(space.size, size, p=pmf)
                often = torch.from_numpy(np.bincount(places, minlength=space.size) / size)
                settings = {"alphabet": list(range(space.states))}
                model, seconds = fitted(arguments, seed, x[places], settings=settings)
                tv, memorising = distance(neurise.exact.law(model).cpu(), truth), distance(often, truth)
                yield {
                    "case": f"{name} {size}",
                    "seed": seed,
                    "tv": tv,
                    "memorising": memorising,
                    "seconds": seconds,
                    **{f"share_{kind}": share for kind, share in shares(model).items()},
                }


def shares(model: neurise.NeurISE) -> dict[str, float]:
    """Return the shares of networks, energy and counts."""
    found = dict.fromkeys(("networks", "energy", "counts"), 0.0)
    for kind, share in model.shares_.items():
        found[kind if kind in found else "networks"] += share
    return found
