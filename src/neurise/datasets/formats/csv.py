"""Symbols as cells of a text: what a cell may hold, and how rows are written."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Literal, NoReturn, TextIO

import numpy as np

BLOCK = 2**18
"""Cells that are held as Python objects at a time: a long file never exists twice in full."""

Line = tuple[int, list[str]]
"""A line's number, from 1, and its cells."""


@contextmanager
def parsing(path: Path) -> Iterator[None]:
    """Say which file it was that has no cells and lines."""
    try:
        yield
    except csv.Error as error:
        raise ValueError(f"{path} is no comma-separated text: {error}") from error


def write_csv(stream: TextIO, rows: np.ndarray, delimiter: str = ",") -> None:
    """Write rows of symbols, without a header."""
    writer = csv.writer(stream, delimiter=delimiter, lineterminator="\n", quoting=quoting_of(rows))
    step = max(1, BLOCK // rows.shape[1])
    for start in range(0, len(rows), step):
        writer.writerows(as_cells(rows[start : start + step]).tolist())


def quoting_of(rows: np.ndarray) -> Literal[0, 1]:
    """Say whether to quote all cells: some letters would else be read as the end of a line or of a cell, or as nothing."""
    risky = rows.dtype.kind in "US" and np.isin(rows.astype(str), ["\r", "\t", ",", "\ufeff"]).any()
    return csv.QUOTE_ALL if risky else csv.QUOTE_MINIMAL


def as_cells(symbols: np.ndarray) -> np.ndarray:
    """Give symbols the type that they have in a text file: whole numbers, or letters."""
    return symbols.astype(str if symbols.dtype.kind in "US" else np.int64)


def symbols_of(path: Path, block: list[Line], sites: Sequence[int], delimiter: str, *, numbers: bool) -> np.ndarray:
    """Translate the cells of some lines, (lines, sites); ``sites`` are the columns that they come from."""
    try:
        if not numbers:
            return np.array([[_letter(cell) for cell in cells] for _, cells in block], dtype="U1")
        try:
            return np.array([[int(cell) for cell in cells] for _, cells in block], dtype=np.int64)
        except ValueError:  # whole numbers may be written 1.0 or 1e0, as numpy.savetxt does
            return np.array([[whole(cell) for cell in cells] for _, cells in block], dtype=np.int64)
    except (ValueError, OverflowError) as error:
        _refuse(path, block, sites, delimiter, numbers, error)


def _refuse(
    path: Path, block: list[Line], sites: Sequence[int], delimiter: str, numbers: bool, cause: Exception
) -> NoReturn:
    """Name the first cell that is not what the others are."""
    number, cells = next(line for line in block if not all(is_symbol(cell, numbers) for cell in line[1]))
    place = next(place for place, cell in enumerate(cells) if not is_symbol(cell, numbers))
    raise ValueError(
        f"{path}, line {number}, column {sites[place] + 1}: {cells[place][:20]!r} is not "
        f"{'a whole number' if numbers else 'a single letter'} like the others; cells are separated by "
        f"{'tabs' if delimiter == chr(9) else 'commas'}, and missing values are not supported"
    ) from cause


def is_symbol(cell: str, numbers: bool) -> bool:
    """Whether a cell holds a whole number, or a single letter."""
    try:
        return bool(_letter(cell)) if not numbers else -(2**63) <= whole(cell) < 2**63
    except (ValueError, OverflowError):
        return False


def whole(cell: str) -> int:
    """Read a whole number, however it is written."""
    try:
        return int(cell)
    except ValueError:
        value = float(cell)
        if not value.is_integer():
            raise
        return int(value)


def _letter(cell: str) -> str:
    """Drop the blanks around a letter (a blank alone is a letter too) and insist that it is one."""
    letter = cell.strip() if len(cell) > 1 else cell
    if len(letter) != 1 or letter.isdecimal():
        raise ValueError(cell)
    return letter


def labels_of(tags: Sequence[str | int]) -> np.ndarray:
    """Give labels as whole numbers where all of them are, else as text."""
    try:
        return np.array([int(tag) for tag in tags], dtype=np.int64)
    except (ValueError, OverflowError):
        return np.array(tags, dtype=str)


def may_be_names(cells: Sequence[str]) -> bool:
    """Whether single letters may be the names of columns: all of the alphabet, and none twice."""
    return len(set(cells)) == len(cells) and all(cell.isalpha() for cell in cells)


def counts_columns(rows: np.ndarray) -> bool:
    """Whether the first row is the header 0, 1, 2, … that tables without column names are written with.

    As data it would be one row that counts its sites with symbols that do not occur again.
    """
    sites = rows.shape[1]
    if rows.dtype.kind in "US" or len(rows) <= sites or not np.array_equal(rows[0], np.arange(sites)):
        return False
    below = np.unique(rows[1:])
    return len(below) < sites and not np.isin(rows[0], below).all()
