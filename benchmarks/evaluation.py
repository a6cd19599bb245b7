"""What an evaluation costs: time of every measure and peak memory, on 10⁴ samples of 2084 sites.

    NEURISE_DATA=... python benchmarks/evaluation.py

The rows are real reads of a quantum annealer (20,000 × 2084), 10⁴ of them as if they were samples of a model; without
``NEURISE_DATA``, random spins. Drawing and likelihood are not part of it.
"""

from __future__ import annotations

import argparse
import os
import platform
import resource
import time

import numpy as np
import torch

import neurise
from neurise.dataset import Dataset
from neurise.evaluation import BASELINES, MEASURES, Case, evaluate
from neurise.space import Space


def rows() -> Dataset:
    if os.environ.get("NEURISE_DATA"):
        return neurise.datasets.dwave("advantage41_q2084", test_fraction=0.25)
    spins = np.random.default_rng(0).choice(np.array([-1, 1], dtype=np.int8), (20_000, 2084))
    return Dataset("random spins", Space(2084, 2), np.array([-1, 1]), train=spins[:15_000], test=spins[15_000:])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--samples", type=int, default=10_000)
    arguments = parser.parse_args()
    data = rows()
    given = data.train[np.random.default_rng(1).permutation(len(data.train))[: arguments.samples]]
    print(
        f"neurise {neurise.__version__}, torch {torch.__version__}, {platform.machine()}, {torch.get_num_threads()} threads"
    )
    print(f"{len(given):,} given samples of {data.space.sites:,} sites, {data.name}")
    case = Case(given, data, samples=arguments.samples, seed=0, exact=None)
    total = 0.0
    for measure in MEASURES:
        began = time.perf_counter()
        found = list(measure(case))
        seconds = time.perf_counter() - began
        total += seconds
        if found:
            print(f"{measure.__name__:<16} {seconds:6.1f} s   " + ", ".join(f"{r.name} {r.value:.4g}" for r in found))
    print(f"{'all of them':<16} {total:6.1f} s   peak memory of the process {_peak():.2f} GB")
    began = time.perf_counter()
    evaluate(given, data, samples=arguments.samples)
    print(f"with {' and '.join(BASELINES)}: {time.perf_counter() - began:.1f} s, {_peak():.2f} GB")


def _peak() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e9


if __name__ == "__main__":
    main()
