"""Reads in ``.npz`` files: spins, bits or packed bits, as they came from the machine or counted."""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import Any

import numpy as np

from neurise.datasets._annealers.problem import Labels, Problem, problem_of_arrays
from neurise.datasets._annealers.reads import Reads, as_counts, as_numbers, as_spins
from neurise.datasets.formats.arrays import load_arrays

PACKED = ("samples_packed", "configs_packed")
PLAIN = ("samples", "configs", "spins", "solutions")
COUNTS = ("num_occurrences", "counts")
ENERGIES = ("energies", "energy")
LABELS = ("qubit_ids", "variable_ids")
OTHER = ("n_qubits", "batch", "edges", "J", "h", "offset")
OWN = (*PACKED, *ENERGIES, *LABELS, "num_occurrences", "n_qubits", "batch", "J", "h")
"""Names by which one knows a file of reads from other archives."""


def holds_reads(path: Path) -> bool:
    """Whether an archive is one of reads, by the names of its arrays alone; anything else that the path leads to is not."""
    try:
        with zipfile.ZipFile(path) as archive:
            names = {name.removesuffix(".npy") for name in archive.namelist()}
    except (OSError, ValueError, NotImplementedError, zipfile.BadZipFile):
        return False
    return bool(names.intersection(OWN)) and bool(names.intersection((*PACKED, *PLAIN)))


def reads_of_npz(path: Path) -> Reads:
    """Read a file of reads.

    Rows are in one of ``samples``, ``configs``, ``spins``, ``solutions`` (±1, or 0/1), or packed, eight to a byte and the
    first column in the highest bit, in ``samples_packed`` or ``configs_packed`` with ``n_qubits``. Besides them:
    ``num_occurrences`` or ``counts``, ``energies``, ``batch``, ``qubit_ids``; and the problem: ``edges``, (couplers, 2)
    column numbers, ``J``, ``h``, ``offset``. Single values of any other name are kept as they are.
    """
    where, arrays = str(path), load_arrays(path)
    known = (*PACKED, *PLAIN, *COUNTS, *ENERGIES, *LABELS, *OTHER)
    unknown = [key for key, values in arrays.items() if key not in known and values.ndim]
    if unknown:
        raise ValueError(f"{where} has arrays {unknown} that are not known; there are: {', '.join(known)}")
    key = _one_of(arrays, (*PACKED, *PLAIN), where)
    if key is None:
        raise ValueError(f"{where} has no reads: an array called {', '.join(PLAIN)} or {' or '.join(PACKED)} is needed")
    packed, values = key in PACKED, arrays[key]
    if values.ndim != 2:
        raise ValueError(f"{where}: {key} has the shape {values.shape}; one row per read is needed")
    sites = _sites(arrays, values, packed, where)
    unpacked = (
        _unpacked(values, sites, f"{where}: {key}") if packed else None
    )  # before names are made for so many sites
    labels = _labels(arrays, sites, where)
    spins = as_spins(values, where, labels, bits=None) if unpacked is None else unpacked
    if not len(spins):
        raise ValueError(f"{where} has no reads")
    counts_key, energies_key = _one_of(arrays, COUNTS, where), _one_of(arrays, ENERGIES, where)
    rows = {
        name: as_numbers(arrays[found], len(spins), f"{where}: {found}")
        for name, found in (("energies", energies_key), ("batch", "batch" if "batch" in arrays else None))
        if found is not None
    }
    counts = None
    if counts_key is not None:
        counts = as_counts(arrays[counts_key], len(spins), f"{where}: {counts_key}")
    info = {name: values.item() for name, values in arrays.items() if name not in known}
    return Reads(labels, spins, counts, rows, _problem(arrays, labels, where), info | {"vartype": "SPIN"})


def _one_of(arrays: dict[str, np.ndarray], keys: tuple[str, ...], where: str) -> str | None:
    found = [key for key in keys if key in arrays]
    if len(found) > 1:
        raise ValueError(f"{where} has the same thing under several names: {', '.join(found)}")
    return found[0] if found else None


def _sites(arrays: dict[str, np.ndarray], values: np.ndarray, packed: bool, where: str) -> int:
    if "n_qubits" not in arrays:
        if packed:
            raise ValueError(f"{where} has packed bits and no n_qubits: how many columns there are is not known")
        return int(values.shape[1])
    given = arrays["n_qubits"]
    if given.size != 1 or given.dtype.kind not in "iu" or given.item() < 1:
        raise ValueError(f"{where}: n_qubits is {given.tolist()!r:.80}; one positive whole number is needed")
    if not packed and given.item() != values.shape[1]:
        raise ValueError(f"{where}: n_qubits is {given.item()}, and the rows have {values.shape[1]} columns")
    return int(given.item())


def _unpacked(values: np.ndarray, sites: int, what: str) -> np.ndarray:
    if values.dtype != np.uint8 or values.shape[1] != -(-sites // 8):
        raise ValueError(
            f"{what} is of type {values.dtype} with {values.shape[1]} columns; {sites} qubits take {-(-sites // 8)} columns "
            "of uint8"
        )
    spare = values.shape[1] * 8 - sites
    filled = values[:, -1] & (2**spare - 1)
    if filled.any():
        row = int(filled.argmax())
        raise ValueError(
            f"{what}: row {row} has bits beyond its {sites} qubits; n_qubits or the order of bits is wrong"
        )
    spins = np.unpackbits(values, axis=1, count=sites).view(np.int8)
    spins *= 2
    spins -= 1
    return spins


def _labels(arrays: dict[str, np.ndarray], sites: int, where: str) -> Labels:
    key = _one_of(arrays, LABELS, where)
    if key is None:
        return tuple(range(sites))
    if arrays[key].shape != (sites,):
        raise ValueError(f"{where}: {key} has the shape {arrays[key].shape}; one for each of {sites} columns is needed")
    return tuple(arrays[key].tolist())


def _problem(arrays: dict[str, np.ndarray], labels: Labels, where: str) -> Problem | None:
    if ("edges" in arrays) != ("J" in arrays):
        here, missing = ("edges", "J") if "edges" in arrays else ("J", "edges")
        raise ValueError(f"{where} has {here} and no {missing}; a coupler needs both")
    if "J" not in arrays and "h" not in arrays:
        return None
    offset: Any = arrays.get("offset", np.zeros(()))
    if offset.size != 1:
        raise ValueError(f"{where}: offset has the shape {offset.shape}; one number is needed")
    return problem_of_arrays(
        arrays.get("edges", np.zeros((0, 2), dtype=np.int64)),
        arrays.get("J", np.zeros(0)),
        arrays.get("h"),
        offset.item(),
        labels,
        where,
    )
