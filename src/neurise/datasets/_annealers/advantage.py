"""Public reads of real machines: from the user's own files, or from where their authors keep them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from neurise.datasets._annealers.inert import object_in_npz
from neurise.datasets._annealers.problem import Problem, problem_of_terms
from neurise.datasets._annealers.reads import Reads, as_counts, as_numbers, as_spins
from neurise.datasets._annealers.reads_npz import reads_of_npz
from neurise.datasets._sources import locate
from neurise.datasets.formats.arrays import load_arrays

ADVANTAGE = {263: 5, 678: 5, 958: 5, 1312: 5, 2084: 29, 5627: 33}
"""Qubits of each published instance, and how many batches of reads there are of it."""

FOLDER = "https://raw.githubusercontent.com/iitis/dynamics-benchmark/b0e2d47c5fa5039db87d0427d48cdc4e5132ec09/cyclicycles/data"
"""The commit is named, so that the files behind these addresses never change."""

ADVANTAGE_INFO = {
    "source": "iitis/dynamics-benchmark (Hanussek, Pawłowski, Mzaouali, Gardas)",
    "licence": "CC BY 4.0",
    "chip": "Advantage_system4.1",
    "anneal_time_us": 20.0,
}
DWAVE2X = "dwave2x_q62"
DWAVE2X_INFO = {
    "source": "lanl-ansi/inverse_ising (Lokhov, Vuffray, Misra, Chertkov 2018)",
    "licence": "LANL, BSD-like",
    "chip": "D-Wave 2X",
}

NAMES = (*(f"advantage41_q{qubits}" for qubits in ADVANTAGE), DWAVE2X)


def public_reads(name: str) -> Reads:
    """Find the reads of one of ``NAMES``: as one file in ``NEURISE_DATA``, or as their authors published them."""
    if name == DWAVE2X:
        return _described(
            reads_of_npz(locate([f"{name}.npz", f"{name}_train400k_hist.npz"], within="dwave")), DWAVE2X_INFO
        )
    try:
        path = locate([f"{name}.npz", f"{name}_train20000.npz"], within="dwave")
    except FileNotFoundError:
        return _published(name, int(name.rpartition("q")[2]))
    return _described(reads_of_npz(path), ADVANTAGE_INFO)


def _published(name: str, qubits: int) -> Reads:
    """Download an instance and all batches of its reads. The energies, checked afterwards, say whether they are whole."""
    instance = f"N_{qubits}_realization_1"
    within = f"dwave/{name}"
    place = locate(["J.npz"], within=within, urls=[f"{FOLDER}/instances/4.1/{instance}/J.npz"], check=_check_couplings)
    labels, problem = _couplings(place)
    if len(labels) != qubits:
        raise ValueError(f"{place} couples {len(labels)} qubits, and {qubits} were expected; remove it and try again")
    spins, counts, energies, batches = [], [], [], []
    for batch in range(1, ADVANTAGE[qubits] + 1):
        url = f"{FOLDER}/results/forward/4.1/{instance}/{batch}.npz"
        path = locate([f"{batch}.npz"], within=within, urls=[url], check=_check_batch)
        arrays = load_arrays(path, ("solutions", "energies", "num_occurrences"))
        spins.append(as_spins(arrays["solutions"], str(path), labels, bits=False))
        rows = len(spins[-1])
        counts.append(as_counts(arrays["num_occurrences"], rows, f"{path}: num_occurrences"))
        energies.append(as_numbers(arrays["energies"], rows, f"{path}: energies"))
        batches.append(np.full(rows, batch, dtype=np.int16))
    described = {"energies": np.concatenate(energies), "batch": np.concatenate(batches)}
    info = {**ADVANTAGE_INFO, "vartype": "SPIN"}
    return Reads(labels, np.concatenate(spins), np.concatenate(counts), described, problem, info)


def _couplings(path: Path) -> tuple[tuple[int, ...], Problem]:
    """Read the published couplings, a Python dictionary by pairs of qubits; columns are the qubits in rising order."""
    J = object_in_npz(path, "J")
    if not isinstance(J, dict) or not all(isinstance(key, tuple) and len(key) == 2 for key in J):
        raise ValueError(f"{path}: J is no dictionary by pairs of qubits")
    if strange := [end for key in J for end in key if not isinstance(end, int | np.integer)]:
        raise ValueError(f"{path}: J has the qubit {strange[0]!r}; qubits are whole numbers")
    labels = tuple(sorted({int(end) for key in J for end in key}))
    return labels, problem_of_terms({}, J, 0.0, labels, str(path))


def _check_couplings(path: Path) -> None:
    _couplings(path)


def _check_batch(path: Path) -> None:
    load_arrays(path, ("solutions", "energies", "num_occurrences"))


def _described(reads: Reads, info: dict[str, Any]) -> Reads:
    return Reads(reads.labels, reads.spins, reads.counts, reads.rows, reads.problem, {**info, **reads.info})
