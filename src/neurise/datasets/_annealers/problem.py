"""The energy function that an annealer was given, in the annealer's sign."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

BLOCK = 2**22
"""Products of two spins that exist at a time while energies are summed: as float64 they take 32 MB."""

Labels = tuple[Hashable, ...]
"""What the machine calls its variables (qubit numbers, mostly), in the order of the columns."""


@dataclass(frozen=True, eq=False)
class Problem:
    r"""Energy :math:`E(s) = c + \sum_{(i,j)} J_{ij} s_i s_j + \sum_i h_i s_i` of spins ±1; low energies are sampled.

    This is the sign of D-Wave, dimod and LANL. Ours is the other one: a law :math:`\mu \propto \exp(+\sum J\sigma\sigma + …)` has
    the couplings −J.
    """

    edges: np.ndarray  # (couplers, 2) columns
    J: np.ndarray  # (couplers,)
    h: np.ndarray  # (sites,)
    offset: float = 0.0

    @cached_property
    def scale(self) -> float:
        """Sum of all absolute coefficients: no energy is larger, and rounding errors are relative to it."""
        return float(np.abs(self.J).sum() + np.abs(self.h).sum() + abs(self.offset))

    def energy(self, spins: Any) -> np.ndarray:
        """Energy of each row of ±1, (N,), summed in float64, a block of rows at a time."""
        rows = np.asarray(spins)
        if rows.ndim != 2 or rows.shape[1] != len(self.h):
            raise ValueError(f"rows of {len(self.h)} spins are needed; the shape is {rows.shape}")
        wrong = (rows != 1) & (rows != -1)
        if wrong.any():
            row, column = np.unravel_index(int(wrong.argmax()), rows.shape)
            raise ValueError(f"row {row}, column {column} is {rows[row, column].item()!r}; a spin is -1 or 1")
        energies = np.empty(len(rows))
        step = max(1, BLOCK // max(1, len(self.J)))
        for start in range(0, len(rows), step):
            # One spin of all rows lies together, so that picking the two ends of a coupler copies whole lines.
            block = np.ascontiguousarray(rows[start : start + step].T, dtype=np.int8)  # (sites, rows)
            products = block[self.edges[:, 0]] * block[self.edges[:, 1]]  # (couplers, rows)
            energies[start : start + step] = self.J @ products.astype(float) + self.h @ block.astype(float)
        return energies + self.offset

    def check(self, spins: np.ndarray, energies: np.ndarray, tolerance: float, where: str) -> None:
        """Compare the energies that came with the rows with those of this problem."""
        expected = self.energy(spins)
        allowed = tolerance * self.scale
        wrong = ~(np.abs(expected - energies) <= allowed)  # written so that NaN is wrong
        if not wrong.any():
            return
        row = int(wrong.argmax())
        turned = bool((np.abs(expected + energies) <= allowed + 2 * abs(self.offset)).all())
        hint = (
            "all signs are turned: E = +ΣJss + Σhs is expected, and low energies are sampled"
            if turned
            else "the reads belong to another problem, or their columns stand in another order"
        )
        raise ValueError(
            f"{where}: row {row} has the energy {float(energies[row])!r}, and its couplings and fields give "
            f"{float(expected[row])!r} ({int(wrong.sum())} of {len(wrong)} rows differ by more than {allowed:.2g}, which "
            f"rounding explains); {hint}"
        )


def problem_of_arrays(edges: Any, J: Any, h: Any, offset: Any, labels: Labels, where: str) -> Problem:
    """Check arrays of columns and coefficients, and make a problem of them."""
    sites = len(labels)
    ends = np.asarray(edges)
    if ends.size and (ends.dtype.kind not in "iu" or ends.ndim != 2 or ends.shape[1] != 2):
        raise ValueError(
            f"{where}: couplers are of type {ends.dtype} and shape {ends.shape}; pairs of columns are needed"
        )
    pairs = ends.astype(np.int64).reshape(-1, 2)
    try:
        couplings = np.asarray(J, dtype=float)
        fields = np.zeros(sites) if h is None else np.asarray(h, dtype=float)
        constant = float(offset)
    except (TypeError, ValueError, OverflowError) as error:
        raise ValueError(f"{where}: J, h and the offset must be numbers ({error})") from error
    if couplings.shape != (len(pairs),):
        raise ValueError(f"{where}: J has the shape {couplings.shape}; one for each of {len(pairs)} couplers is needed")
    if fields.shape != (sites,):
        raise ValueError(f"{where}: h has the shape {fields.shape}; one for each of {sites} variables is needed")
    outside = ((pairs < 0) | (pairs >= sites)).any(axis=1)
    if outside.any():
        place = int(outside.argmax())
        raise ValueError(
            f"{where}: coupler {place} joins the columns {pairs[place].tolist()}, and there are columns 0 … {sites - 1} only"
        )
    loops = pairs[:, 0] == pairs[:, 1]
    if loops.any():
        place = int(loops.argmax())
        raise ValueError(f"{where}: coupler {place} joins {labels[int(pairs[place, 0])]!r} to itself")
    for what, values in (("J", couplings), ("h", fields)):
        if not np.isfinite(values).all():
            place = int((~np.isfinite(values)).argmax())
            raise ValueError(f"{where}: {what} has {values[place]} at position {place}; it must be finite")
    if not np.isfinite(constant):
        raise ValueError(f"{where}: the offset is {offset}; it must be finite")
    return Problem(pairs, couplings, fields, constant)


def problem_of_terms(h: Mapping[Any, Any], J: Mapping[Any, Any], offset: Any, labels: Labels, where: str) -> Problem:
    """Make a problem of coefficients by variable: ``h[v]`` and ``J[u, v]``. J may name a pair in both orders: they add up."""
    columns = column_of(labels, where)
    fields: list[Any] = [0.0] * len(labels)
    for variable, value in h.items():
        fields[find_column(columns, variable, f"{where}: h names")] = value
    pairs = []
    for key in J:
        if not isinstance(key, tuple) or len(key) != 2:
            raise ValueError(f"{where}: J has the key {key!r}; a pair (u, v) of variables is needed")
        pairs.append([find_column(columns, end, f"{where}: J names the coupler {key!r}, with") for end in key])
    return problem_of_arrays(pairs, list(J.values()), fields, offset, labels, where)


def column_of(labels: Labels, where: str) -> dict[Hashable, int]:
    """Give the column of each variable, after checking that none is named twice."""
    columns: dict[Hashable, int] = {}
    for place, label in enumerate(labels):
        if label in columns:
            raise ValueError(f"{where}: the variable {label!r} stands in the columns {columns[label]} and {place}")
        columns[label] = place
    return columns


def few(values: Sequence[Any], most: int = 8) -> str:
    """Write the first of many values."""
    return ", ".join(repr(value) for value in values[:most]) + (", …" if len(values) > most else "")


def find_column(columns: Mapping[Hashable, int], variable: Any, what: str) -> int:
    """Give the column of a variable that something names."""
    try:
        return columns[variable]
    except (KeyError, TypeError):
        known = few(list(columns))
        raise ValueError(
            f"{what} {variable!r}, which is none of the {len(columns)} variables of the reads: {known}"
        ) from None
