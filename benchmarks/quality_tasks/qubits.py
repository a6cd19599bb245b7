"""Reads of five thousand qubits: a spin glass on a Chimera graph, drawn by parallel tempering on the device.

Chimera C25 has 25 × 25 cells of eight qubits: 5000 qubits, six couplers each. Couplings are uniform in ±``--strength``.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator

import numpy as np
import torch

import neurise
from neurise.interactions import Interactions
from neurise.mcmc import parallel_tempering
from quality_tasks._fit import Row, fitted

LADDERS, APART = 256, 10
"""Ladders side by side, and sweeps between two rows of one."""


def run(arguments: argparse.Namespace) -> Iterator[Row]:
    """Fit ``--reads`` of each instance, and compare as many draws as there are test reads."""
    for seed in arguments.seeds:
        rng = np.random.default_rng(seed)
        edges = chimera(arguments.cells)
        couplings = rng.uniform(-arguments.strength, arguments.strength, len(edges))
        law = Interactions.ising(edges, couplings, np.zeros(8 * arguments.cells**2))
        generator = torch.Generator(arguments.device).manual_seed(seed)
        wanted = arguments.reads + 2 * arguments.draws
        reads = parallel_tempering(
            law, wanted, generator=generator, groups=LADDERS, sweeps=APART * -(-wanted // LADDERS)
        )
        rows = reads.rows.reshape(-1, law.sites).numpy()
        # Rows of one ladder are alike, and random ones of all ladders are not.
        spins = 2 * rows[rng.permutation(len(rows))].astype(np.int8) - 1
        test, other, train = np.split(spins, [arguments.draws, 2 * arguments.draws])
        train = train[: arguments.reads]
        model, seconds = fitted(arguments, seed, train)
        drawn = model.sample(arguments.draws, seed=seed)
        error = neurise.metrics.cross_correlation(drawn, test, other=other, couplers=edges).mean_abs
        yield {
            "seed": seed,
            "couplers": float(error),
            "over_floor": float(error) / error.floor,
            "problems": len(reads.diagnostics.problems),
            "effective_rows": reads.diagnostics.effective_rows,
            "seconds": seconds,
        }


def chimera(cells: int) -> np.ndarray:
    """Return the couplers (m, 2) of a Chimera graph of cells × cells complete bipartite cells of four and four qubits."""
    number = np.arange(8 * cells**2).reshape(cells, cells, 2, 4)
    within = [np.stack([number[:, :, 0, i], number[:, :, 1, j]], axis=-1) for i in range(4) for j in range(4)]
    down = np.stack([number[:-1, :, 0], number[1:, :, 0]], axis=-1)
    along = np.stack([number[:, :-1, 1], number[:, 1:, 1]], axis=-1)
    return np.concatenate([pairs.reshape(-1, 2) for pairs in (*within, down, along)])
