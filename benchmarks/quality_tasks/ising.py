"""Exact total variation on 5×5 Edwards–Anderson `paper` instances over that of memorising the same rows."""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator

import torch

import neurise
from neurise.laws import distance
from quality_tasks._fit import Row

GROUP = "rows"


def run(arguments: argparse.Namespace) -> Iterator[Row]:
    """Fit all cells together; rows are drawn by the number of the instance."""
    cells = [(size, instance) for size in arguments.sizes for instance in arguments.instances]
    sets = {seed: neurise.datasets.edwards_anderson(side=5, seed=seed) for seed in arguments.instances}
    rows = [sets[instance].sample(size, seed=1000 + instance) for size, instance in cells]
    models = [neurise.NeurISE().set_params(**arguments.settings) for _ in cells]
    began = time.perf_counter()
    neurise.fit_many(models, rows, seeds=[seed for _, seed in cells], verbose=False, **arguments.budget)
    seconds = time.perf_counter() - began
    for (size, instance), model, own in zip(cells, models, rows, strict=True):
        pmf = torch.from_numpy(sets[instance].pmf).to(arguments.device)
        memorised = neurise.metrics.total_variation(own, sets[instance].pmf, alphabet=[-1, 1])
        tv = distance(neurise.exact.law(model).to(pmf.device), pmf)
        yield {
            "rows": size,
            "seed": instance,
            "tv": tv,
            "memorising": float(memorised),
            "seconds": seconds / len(cells),
        }
