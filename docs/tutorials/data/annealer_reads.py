"""Write reads of a pretended quantum annealer, with the faults that real ones have.

The machine is told couplings J of E(s) = Σ J s s on a part of a Zephyr chip. It answers with the Gibbs law of a slightly
different problem, at a temperature of its own, and now and then misreads a spin:

- the inverse temperature is BETA;
- every coupling is off by a control error, and every qubit leans a little to one side;
- two qubits that were never coupled disturb each other (cross-talk);
- a spin is read wrongly with probability MISREAD.

The file holds what a machine would give: reads, energies, the numbers of the qubits, and the programmed couplings.

    python docs/tutorials/data/annealer_reads.py reads.npz --seed 0
"""

from __future__ import annotations

import argparse
from pathlib import Path

import dwave.graphs
import numpy as np

from neurise import datasets

BETA = 0.7
CONTROL, LEAN = 0.04, 0.06
"""Standard deviations of the errors of couplings and of the fields, in units of the largest coupling."""
CROSS_TALK = 0.45
MISREAD = 0.005


def machine(qubits: int, seed: int) -> dict[str, np.ndarray]:
    """Draw a problem on a connected part of the chip, and what the machine makes of it."""
    rng = np.random.default_rng(seed)
    chip = dwave.graphs.zephyr_graph(1)
    used = [sorted(chip.nodes)[int(rng.integers(len(chip)))]]
    for qubit in used:  # neighbours of neighbours, until there are enough
        used += [other for other in sorted(chip[qubit]) if other not in used][: qubits - len(used)]
    used.sort()
    edges = np.array([(i, j) for i in range(qubits) for j in range(i + 1, qubits) if chip.has_edge(used[i], used[j])])
    told = rng.uniform(-1, 1, len(edges))
    free = [(i, j) for i in range(qubits) for j in range(i + 1, qubits) if not chip.has_edge(used[i], used[j])]
    return {
        "qubit_ids": np.array(used),
        "edges": edges,
        "J": told,
        "real_J": told + rng.normal(0, CONTROL, len(edges)),
        "real_h": rng.normal(0, LEAN, qubits),
        "cross_talk": np.array(free[int(rng.integers(len(free)))]),
    }


def true_law(made: dict[str, np.ndarray]) -> datasets.Dataset:
    """Give the law that the machine really follows, before spins are read."""
    edges = np.vstack([made["edges"], made["cross_talk"]])
    return datasets.ising(edges, -BETA * np.append(made["real_J"], CROSS_TALK), -BETA * made["real_h"], name="machine")


def read(made: dict[str, np.ndarray], reads: int, seed: int) -> np.ndarray:
    """Draw reads, (reads, qubits) of ±1."""
    spins = true_law(made).sample(reads, seed=seed)
    return np.where(np.random.default_rng(seed).random(spins.shape) < MISREAD, -spins, spins).astype(np.int8)


def main() -> None:
    """Write the file."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("output", type=Path)
    options.add_argument("--reads", type=int, default=10_000)
    options.add_argument("--qubits", type=int, default=20)
    options.add_argument("--seed", type=int, default=0)
    given = options.parse_args()
    made = machine(given.qubits, given.seed)
    samples = read(made, given.reads, given.seed)
    energies = (samples[:, made["edges"][:, 0]] * samples[:, made["edges"][:, 1]]) @ made["J"]
    known = {name: made[name] for name in ("qubit_ids", "edges", "J")}
    np.savez_compressed(given.output, samples=samples, energies=energies, **known, size=1, topology="zephyr")
    print(f"{given.output}: {given.reads:,} reads of {given.qubits} qubits, {len(made['edges'])} couplers")


if __name__ == "__main__":
    main()
