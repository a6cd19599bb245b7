"""Reads of an annealer by network="sparse": seconds to find parents, seconds of the whole fit, and the test likelihood."""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator

import numpy as np
import torch

import neurise
from neurise.energies.parents import of_rows
from neurise.networks.sparse import Sparse
from neurise.rows import Rows, split
from quality_tasks._fit import Row, fitted


def run(arguments: argparse.Namespace) -> Iterator[Row]:
    """Fit three quarters of the reads of each split, with their counts; equal reads are one row.

    Parents are found once more by themselves, to see how long that takes. Seconds of the processor, of all its cores together,
    do not depend on what else the machine does. A constructor call may say otherwise by ``--set``,
    but for the network.
    """
    device = torch.device(arguments.device)
    for seed in arguments.seeds:
        data = neurise.datasets.dwave(arguments.source, test_fraction=0.25, seed=seed)
        graph = {"graph": data.edges} if arguments.graph else {}
        busy = time.process_time()
        model, seconds = fitted(
            arguments, seed, data.train, weights=data.weights, settings={"network": "sparse", **graph}
        )
        busy = time.process_time() - busy
        weights = None if data.weights is None else torch.from_numpy(np.asarray(data.weights, dtype=float))
        rows = Rows(torch.from_numpy(np.asarray(data.train) > 0).to(torch.uint8), None, weights)
        own, held = split(rows, 0.1, generator=torch.Generator().manual_seed(seed))
        place = torch.arange(rows.x.shape[1], device=device)
        most = Sparse(model.space_, model.space_.sites, width=1).parents
        began, alone_busy = time.perf_counter(), time.process_time()
        found = of_rows(own, held, 2, place[:, None] < place, most=most)
        count = (found.sites >= 0).sum(1).cpu()  # which waits for the device
        alone, alone_busy = time.perf_counter() - began, time.process_time() - alone_busy
        yield {
            "seed": seed,
            "sites": rows.x.shape[1],
            "rows": len(rows),
            "parents_seconds": alone,
            "parents_processor_seconds": alone_busy,
            "fit_seconds": seconds,
            "fit_processor_seconds": busy,
            "nll": -float(model.log_prob(data.test).mean()),
            "parents": float(count.float().mean()),
            "most_parents": int(count.max()),
            "at_the_limit": int((count == most).sum()),
        }
