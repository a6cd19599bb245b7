"""Rows of zeros and ones, read from text or arrays, and checked."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from neurise.datasets.formats.open import read_bytes


def read_bits(path: Path) -> np.ndarray:
    """Read lines of 0 and 1, with commas, blanks or nothing between them, ``.gz`` too: (N, sites) uint8."""
    text = read_bytes(path).translate(None, b" ,\t\r").rstrip(b"\n") + b"\n"
    sites = text.index(b"\n")
    if sites == 0:
        raise ValueError(f"{path} has nothing in line 1; rows of 0 and 1 are needed")
    cells = np.frombuffer(text, dtype=np.uint8)
    rows = cells[: len(cells) // (sites + 1) * (sites + 1)].reshape(-1, sites + 1)
    bits = rows[:, :-1] - ord("0")
    if rows.size != cells.size or (rows[:, -1] != ord("\n")).any() or (bits > 1).any():
        raise ValueError(f"{path} {_fault(text, sites)}")
    return np.ascontiguousarray(bits)


def check_bits(rows: np.ndarray, what: str, sites: int | None = None) -> np.ndarray:
    """Give rows as (N, sites) uint8 of 0 and 1, or say where they are not."""
    if rows.ndim != 2 or 0 in rows.shape:
        raise ValueError(f"{what} must be rows and columns of 0 and 1; its shape is {rows.shape}")
    if sites is not None and rows.shape[1] != sites:
        raise ValueError(f"{what} has {rows.shape[1]} columns, and {sites} were expected")
    wrong = (rows != 0) & (rows != 1)
    if wrong.any():
        row, site = np.argwhere(wrong)[0].tolist()
        raise ValueError(f"{what} has {rows[row, site]} in row {row}, column {site}; it must be 0 or 1")
    return rows.astype(np.uint8, copy=False)


def _fault(text: bytes, sites: int) -> str:
    """Say what is wrong with the first line that is wrong; numbers count from 1, as editors do."""
    for number, line in enumerate(text.split(b"\n"), start=1):
        bad = line.strip(b"01")
        if bad:
            return f"has {bad[:1].decode(errors='replace')!r} in line {number}; only 0 and 1 are allowed"
        if len(line) != sites:
            return f"has {len(line)} columns in line {number} and {sites} in line 1"
    raise AssertionError("there is no fault")
