"""What an annealer returned: rows of spins, how often each was read, and the problem they belong to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from neurise.dataset import Dataset
from neurise.datasets._annealers.problem import Labels, Problem, column_of
from neurise.space import Space

TOLERANCE = 1e-6
"""How far a stored energy may be from that of the problem, in units of Σ|J| + Σ|h| + |offset|.

Storing coefficients and energies in single precision loses 2·2⁻²⁴ = 1.2e-7 of that sum; double precision, as the machines
report it, stays below couplers·2⁻⁵³ (2e-12 for the largest of them).
"""

MOST_READS = 10**9
"""The random split counts reads one by one; numpy's draw without replacement ends here."""

TEMPERATURE = (
    "couplings and fields are -J and -h: those of exp(-E) at inverse temperature 1. The machine samples only roughly "
    "exp(-beta E), and reports no beta: compare couplings up to one common factor"
)


@dataclass(frozen=True, eq=False)
class Reads:
    """Reads of one problem, in whatever form they came."""

    labels: Labels
    spins: np.ndarray  # (N, sites) int8, ±1
    counts: np.ndarray | None = None  # (N,) int64; None: each was read once
    rows: Mapping[str, np.ndarray] = field(default_factory=dict)  # more that belongs to the rows: energies, batch, …
    problem: Problem | None = None
    info: Mapping[str, Any] = field(default_factory=dict)

    def dataset(self, name: str, *, test_fraction: float, seed: int, tolerance: float) -> Dataset:
        """Check the energies and cut the reads into those to learn from and those to test with, at random.

        Reads are drawn, not rows: a configuration that was read often can be on both sides, as with independent reads.
        """
        if not self.labels:
            raise ValueError(f"{name} has reads of no variables")
        column_of(self.labels, name)
        rows = dict(self.rows)
        if self.problem is not None:
            if "energies" in rows:
                self.problem.check(self.spins, rows["energies"], tolerance, name)
            else:
                rows["energies"] = self.problem.energy(self.spins)
        counts = np.ones(len(self.spins), dtype=np.int64) if self.counts is None else self.counts
        held = _held_back(counts, test_fraction, seed, name)
        parts: dict[str, Any] = {}
        info = {**self.info, "qubit_ids": self.labels}
        for prefix, taken in (("", counts - held), ("test_", held)):
            kept = np.flatnonzero(taken)
            if not len(kept):
                continue
            whole = len(kept) == len(taken)
            parts[prefix] = self.spins if whole else self.spins[kept]
            parts[f"{prefix}weights"] = None if (taken[kept] == 1).all() else taken[kept]
            info |= {prefix + key: values if whole else values[kept] for key, values in rows.items()}
        known: dict[str, Any] = {}
        if self.problem is not None:
            problem = self.problem
            known = {
                "edges": problem.edges,
                "couplings": -problem.J,
                "fields": -problem.h,
                "log_weight": lambda X: -problem.energy(X),
            }
            info |= {"offset": problem.offset, "temperature": TEMPERATURE}
        return Dataset(
            name,
            Space(len(self.labels), 2),
            np.array([-1, 1], dtype=np.int8),
            train=parts[""],
            weights=parts["weights"],
            test=parts.get("test_"),
            test_weights=parts.get("test_weights"),
            info=info,
            **known,
        )


def as_spins(values: Any, where: str, labels: Labels, *, bits: bool | None) -> np.ndarray:
    """Make spins ±1, (N, sites) int8, of spins or of bits; where ``bits`` is None, a zero tells them apart."""
    rows = np.asarray(values)
    if rows.ndim != 2 or rows.shape[1] != len(labels):
        raise ValueError(f"{where}: the rows have the shape {rows.shape}; N rows of {len(labels)} variables are needed")
    if not len(rows):
        raise ValueError(f"{where} has no reads")
    if bits is None:
        bits = bool((rows == 0).any())
    low = 0 if bits else -1
    wrong = (rows != low) & (rows != 1)
    if wrong.any():
        row, column = (int(place) for place in np.unravel_index(int(wrong.argmax()), rows.shape))
        value = rows[row, column]
        shown = value.item() if isinstance(value, np.generic) else value
        raise ValueError(
            f"{where}: row {row}, column {column} (variable {labels[column]!r}) is {shown!r}; it must be {low} or 1"
        )
    spins = rows.astype(np.int8)
    if bits:
        spins *= 2
        spins -= 1
    return spins


def as_counts(values: Any, n: int, what: str) -> np.ndarray:
    """Check how often each row was read: whole, not negative, (N,) int64."""
    counts = as_numbers(values, n, what)
    wrong = (counts < 0) | (counts != np.floor(counts)) | (counts >= MOST_READS)
    if wrong.any():
        row = int(wrong.argmax())
        raise ValueError(f"{what} has {counts[row].item()!r} at row {row}; a count is whole, not negative, below 10^9")
    return counts.astype(np.int64)


def as_numbers(values: Any, n: int, what: str) -> np.ndarray:
    """Check that there is one finite number for each of n rows."""
    try:
        numbers = np.asarray(values)
    except ValueError as error:  # lists of several lengths among them
        raise ValueError(f"{what} must be one number per row ({error})") from error
    if numbers.dtype.kind not in "iuf":
        odd = next((value for value in np.ravel(numbers).tolist() if not isinstance(value, int | float)), numbers.dtype)
        raise ValueError(f"{what} has {odd!r}; numbers are needed")
    if numbers.shape != (n,):
        raise ValueError(f"{what} has the shape {numbers.shape}; one for each of {n} rows is needed")
    if not np.isfinite(numbers).all():
        row = int((~np.isfinite(numbers)).argmax())
        raise ValueError(f"{what} has {numbers[row].item()!r} at row {row}; finite numbers are needed")
    return numbers


def _held_back(counts: np.ndarray, fraction: float, seed: int, where: str) -> np.ndarray:
    """Draw how many reads of each row are for the test: all choices of so many reads are equally likely."""
    if not 0 <= fraction < 1:
        raise ValueError(f"test_fraction must be in [0, 1), got {fraction!r}")
    total = int(counts.sum())
    if not 0 < total < MOST_READS:
        raise ValueError(f"{where} has {total} reads; between 1 and 10^9 are supported")
    held = min(round(fraction * total), total - 1)
    rng = np.random.default_rng(seed)
    return np.asarray(rng.multivariate_hypergeometric(counts, held, method="marginals"))
