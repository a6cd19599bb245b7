"""The columns of a table that hold no symbols: labels, and how often a row was seen or what it weighs."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from neurise.datasets.formats.csv import whole

LABELS = ("label", "labels")
COUNTS = ("count", "counts")
WEIGHTS = ("weight", "weights")
"""Names in a header that say what a column is without being asked."""

MOST = 2**53
"""Counts up to here are exact as the floats that weights become."""


@dataclass(frozen=True)
class Columns:
    """Where the labels and the counts stand in a line, and whether its first line is thereby known to be a header."""

    width: int
    label: int | None
    count: int | None
    whole: bool  # counts are whole; weights need not be
    named: bool

    @property
    def sites(self) -> list[int]:
        """The columns that hold symbols."""
        return [column for column in range(self.width) if column not in (self.label, self.count)]


def find_columns(
    path: Path, first: list[str], label_column: str | int | None, count_column: str | int | None
) -> Columns:
    """Look for the columns in the first line, by the names or numbers that were asked for, or by the known names."""
    names = [cell.strip() for cell in first]
    label, label_named = _place(path, names, label_column, LABELS, "labels")
    count, count_named = _place(path, names, count_column, COUNTS + WEIGHTS, "counts")
    if label is not None and label == count:
        raise ValueError(f"{path}: column {label + 1} cannot hold the labels and the counts")
    counts_whole = count is None or not count_named or names[count].lower() not in WEIGHTS
    columns = Columns(len(first), label, count, counts_whole, label_named or count_named)
    if not columns.sites:
        raise ValueError(f"{path} has no column besides the {'labels' if count is None else 'labels or counts'}")
    return columns


def _place(
    path: Path, names: list[str], column: str | int | None, known: tuple[str, ...], what: str
) -> tuple[int | None, bool]:
    """Find a column by its name in the header, which is then known to be one, or by its number."""
    if column is None:
        found = [place for place, name in enumerate(names) if name.lower() in known]
        if len(found) > 1:
            both = " and ".join(repr(names[place]) for place in found[:2])
            raise ValueError(f"{path} has the {what} twice, as {both}; say which column it is")
        return (found[0], True) if found else (None, False)
    try:
        number = int(column)  # a number is never a name: a line of symbols may hold it as one of them
    except ValueError:
        if column in names:
            return names.index(str(column)), True
        number = len(names)
    if not -len(names) <= number < len(names):
        raise ValueError(
            f"{path} has no column {column!r} for the {what}: give a name of its first line, {', '.join(names[:10])}"
            f"{', …' if len(names) > 10 else ''}, or a number from 0 to {len(names) - 1}"
        )
    return number % len(names), False


def is_count(cell: str) -> bool:
    """Whether a cell reads as a number, be it one that is allowed or not."""
    try:
        float(cell)
    except ValueError:
        return False
    return True


def count_of(path: Path, number: int, column: int, cell: str | int, *, only_whole: bool) -> float:
    """Read one count or weight, or say what is wrong with it and where."""
    try:
        value = float(whole(str(cell)) if only_whole else cell)
        fine = math.isfinite(value) and 0 <= value <= MOST
    except (ValueError, OverflowError):
        fine = False
    if not fine:
        wanted = "a count is a whole number, not negative" if only_whole else "a weight is a number, not negative"
        raise ValueError(f"{path}, line {number}, column {column + 1}: {str(cell)[:20]!r}; {wanted}")
    return value


def as_weights(values: list[np.ndarray], *, only_whole: bool) -> np.ndarray:
    """Join the counts of all blocks, as whole numbers, or the weights, as floats."""
    joined = np.concatenate(values)
    if not only_whole:
        return joined
    return joined.astype(np.int64)
