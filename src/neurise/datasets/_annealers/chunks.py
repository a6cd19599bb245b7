"""Reads that come in chunks, kept in a folder so that nothing has to be done twice."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from neurise import json_text
from neurise.datasets._annealers.problem import Labels, Problem
from neurise.datasets.formats.arrays import load_arrays
from neurise.files import write_atomically, write_text

PLAN = "plan.json"


class Chunks:
    """Numbered chunks of reads, in memory or, with a folder, in files.

    The folder belongs to one plan: everything that the reads depend on, but not how many of them are wanted. A chunk is
    written under another name and renamed, so that a file that bears its name is whole.
    """

    def __init__(self, folder: str | Path | None, plan: Mapping[str, Any], sites: int) -> None:
        self.folder, self.sites = None if folder is None else Path(folder), sites
        self._held: dict[int, dict[str, np.ndarray]] = {}
        if self.folder is not None:
            _claim(self.folder, json.loads(json.dumps(plan)))

    def __contains__(self, index: int) -> bool:
        return index in self._held or (self.folder is not None and self._path(index).is_file())

    def missing(self, number: int) -> list[int]:
        """List which of the first chunks are not there yet."""
        return [index for index in range(number) if index not in self]

    def put(self, index: int, spins: np.ndarray, **rows: np.ndarray) -> None:
        """Keep a chunk: spins, (reads, sites) of ±1, and what belongs to its rows."""
        arrays = {"samples_packed": np.packbits(spins > 0, axis=1), **rows}
        if self.folder is None:
            self._held[index] = arrays
        else:
            write_atomically(self._path(index), lambda path: _write(path, arrays))

    def get(self, index: int) -> dict[str, np.ndarray]:
        """Give a chunk back, the spins under ``spins``."""
        arrays = dict(self._held[index] if self.folder is None else load_arrays(self._path(index)))
        packed = arrays.pop("samples_packed", np.zeros(0))
        if packed.ndim != 2 or packed.shape[1] != -(-self.sites // 8):
            raise ValueError(f"{self._path(index)} is not a chunk of this run; remove it and run again")
        spins = np.unpackbits(packed, axis=1, count=self.sites).view(np.int8)
        spins *= 2
        spins -= 1
        return {"spins": spins, **arrays}

    def gather(self, number: int) -> dict[str, np.ndarray]:
        """Join the first chunks."""
        parts = [self.get(index) for index in range(number)]
        return {key: np.concatenate([part[key] for part in parts]) for key in parts[0]}

    def _path(self, index: int) -> Path:
        return (self.folder or Path()) / f"chunk-{index:06d}.npz"


def fingerprint(labels: Labels, problem: Problem) -> str:
    """Tell problems apart: a hash of everything that makes one."""
    total = hashlib.sha256(repr(labels).encode())
    for array in (problem.edges, problem.J, problem.h, np.array(problem.offset)):
        total.update(np.ascontiguousarray(array).tobytes())
    return total.hexdigest()[:16]


def _claim(folder: Path, plan: dict[str, Any]) -> None:
    """Write down what the folder is for, or check that it is for the same."""
    path = folder / PLAN
    if folder.exists() and not folder.is_dir():
        raise ValueError(f"{folder} is a file; a folder is needed to keep the reads in")
    if not path.is_file():
        if folder.is_dir() and any(folder.glob("chunk-*.npz")):
            raise ValueError(f"{folder} holds chunks and no {PLAN}; choose another folder")
        write_text(path, json.dumps(plan, indent=2) + "\n")
        return
    there = json_text.read(path)
    if not isinstance(there, dict):
        raise ValueError(f"{path} is damaged: it is no plan; remove the folder and start again")
    if there != plan:
        keys = [key for key in {**there, **plan} if there.get(key) != plan.get(key)]
        told = "; ".join(f"{key} was {there.get(key)!r} and is {plan.get(key)!r}" for key in keys)
        raise ValueError(f"{folder} holds reads of another run: {told}. Choose another folder")


def _write(path: Path, arrays: Mapping[str, np.ndarray]) -> None:
    with path.open("wb") as file:
        np.savez(file, allow_pickle=False, **arrays)
