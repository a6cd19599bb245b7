"""How near are energies to the truth, and are their graphs right? On Edwards–Anderson `paper` instances, by number of rows.

    OMP_NUM_THREADS=1 python benchmarks/energies.py --side 5 --sizes 100 1000 10000 100000 --json benchmarks/measured/energies.json

The rows are those of ``benchmarks/quality.py ising``. For every instance: the exact total variation, that of memorising the rows,
pairs that are missing and pairs that are false on the graph of the extended Bayesian criterion, and seconds of one thread.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from quality import show
from quality_tasks._fit import Row

import neurise
from neurise.energies.learning import Learnt, learn
from neurise.enumeration import pairwise_law
from neurise.experiments._code import machine, script_version
from neurise.files import write_text
from neurise.rows import Rows


def measure(side: int, size: int, seed: int, device: torch.device) -> Row:
    """Learn the energy of one instance."""
    data = neurise.datasets.edwards_anderson(side=side, seed=seed)
    sample = data.sample(size, seed=1000 + seed)
    rows = Rows(torch.from_numpy((sample > 0).astype(np.uint8)))
    began, spent = time.perf_counter(), time.process_time()
    found = learn(rows, data.space, device=device, seed=seed)
    seconds, spent = time.perf_counter() - began, time.process_time() - spent
    assert isinstance(found, Learnt), found
    law = pairwise_law(found.interactions())[0]
    true = {tuple(sorted(pair)) for pair in data.edges.tolist()}
    graph = {tuple(pair) for pair in found.selected.family.edges.tolist()}
    return {
        "rows": size,
        "seed": seed,
        "tv": 0.5 * float(np.abs(law - data.pmf).sum()),
        "memorising": float(neurise.metrics.total_variation(sample, data.pmf, alphabet=[-1, 1])),
        "pairs": len(found.graph),
        "missing": len(true - graph),
        "false": len(graph - true),
        "seconds": seconds,
        "cpu_seconds": spent,
    }


def cells(arguments: argparse.Namespace) -> Iterator[Row]:
    for size in arguments.sizes:
        for seed in arguments.instances:
            yield measure(arguments.side, size, seed, torch.device(arguments.device))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--side", type=int, default=5)
    parser.add_argument("--sizes", type=int, nargs="+", default=[100, 1000, 10_000, 100_000])
    parser.add_argument("--instances", type=int, nargs="+", default=[0, 1, 2, 3, 4])
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--json", metavar="FILE", help="also write every single run")
    arguments = parser.parse_args()
    made: dict[str, Any] = {
        "command": " ".join(["python benchmarks/energies.py", *sys.argv[1:]]),
        "code": script_version(__file__),
        "machine": machine(arguments.device),
        "rows": list[Row](),
    }
    for row in cells(arguments):
        made["rows"].append(row)
        print(json.dumps(row), flush=True)
        if arguments.json:
            write_text(Path(arguments.json), json.dumps(made, indent=1))
    show(made["rows"], "rows")


if __name__ == "__main__":
    main()
