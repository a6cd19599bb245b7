"""A random number for every row, by its place alone: the same row is set apart in every pass over the files."""

from __future__ import annotations

import hashlib

import numpy as np

EXACT = 2**22
"""Rows up to which a share of them is met exactly."""


def levels(start: int, stop: int, seed: int) -> np.ndarray:
    """Return a number in [0, 1) for each of the rows ``start`` … ``stop`` − 1, float64; they look independent and uniform.

    It is the finaliser of SplitMix64, a counter that is multiplied and mixed.
    """
    key = np.uint64(int.from_bytes(hashlib.sha256(f"{seed} of a row".encode()).digest()[:8]))
    with np.errstate(over="ignore"):
        z = np.arange(start, stop, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15) + key
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.asarray((z ^ (z >> np.uint64(31))) >> np.uint64(11)) * 2.0**-53


def level_of_share(rows: int, wanted: int, seed: int) -> float:
    """Return the level below which ``wanted`` of the rows lie: exactly so many of a few, about so many of very many."""
    if wanted >= rows:
        return 1.0
    if rows > EXACT:
        return wanted / rows
    return float(np.partition(levels(0, rows, seed), wanted)[wanted]) if wanted else 0.0
