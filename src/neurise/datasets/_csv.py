"""Rows of symbols as comma-separated text."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator
from itertools import chain, islice
from pathlib import Path
from typing import NoReturn, TextIO

import numpy as np

BLOCK = 2**20
"""Cells that are held as Python objects at a time: a long file never exists twice in full."""

Line = tuple[int, list[str]]
"""A line's number, from 1, and its cells."""


def read_csv(path: Path, label_column: str | int | None = None) -> tuple[np.ndarray, np.ndarray | None]:
    """Read whole numbers or single letters, (N, sites), and the labels of one more column where it is asked for.

    The first line is a header where none of its cells is a symbol like those below. Numbers come in the smallest type
    that holds them all.
    """
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            return _read(path, _lines(path, file), label_column)
    except UnicodeDecodeError as error:
        raise ValueError(f"{path} is no text in UTF-8: {error}") from error
    except csv.Error as error:
        raise ValueError(f"{path} is no comma-separated text: {error}") from error


def write_csv(stream: TextIO, rows: np.ndarray) -> None:
    """Write rows of symbols, without a header."""
    writer = csv.writer(stream, lineterminator="\n")
    step = max(1, BLOCK // rows.shape[1])
    for start in range(0, len(rows), step):
        writer.writerows(as_cells(rows[start : start + step]).tolist())


def as_cells(symbols: np.ndarray) -> np.ndarray:
    """Give symbols the type that they have in a text file: whole numbers, or letters."""
    return symbols.astype(str if symbols.dtype.kind in "US" else np.int64)


def _read(path: Path, lines: Iterator[Line], label_column: str | int | None) -> tuple[np.ndarray, np.ndarray | None]:
    first, second = next(lines, None), next(lines, None)
    if first is None:
        raise ValueError(f"{path} is empty")
    place, named = _label_place(path, first[1], label_column)
    tags: list[str] = []

    def symbols(line: Line) -> Line:
        """Take the label out of a line."""
        number, cells = line
        if place is None:
            return line
        tags.append(cells[place].strip())
        return number, cells[:place] + cells[place + 1 :]

    start = [symbols(line) for line in (first, second) if line is not None]
    if not start[0][1]:
        raise ValueError(f"{path} has no column besides the labels")
    numbers = _is_symbol(
        start[-1][1][0], numbers=True
    )  # the first cell of the second line sets what all of them must be
    if named or (second and not any(_is_symbol(cell, numbers) for cell in start[0][1])):
        del start[0], tags[:1]
    rest = chain(start, map(symbols, lines))
    parts = []
    while block := list(islice(rest, max(1, BLOCK // len(first[1])))):
        parts.append(_array(path, block, numbers, place))
    if not parts:
        raise ValueError(f"{path} holds a header and nothing else")
    rows = np.concatenate(parts) if len(parts) > 1 else parts[0]
    labels = None if place is None else _labels(tags)
    if numbers and _counts_columns(rows):
        return rows[1:], None if labels is None else labels[1:]
    return rows, labels


def _lines(path: Path, file: Iterable[str]) -> Iterator[Line]:
    """Number the lines and check that all have the same number of cells; empty lines may stand at the end only."""
    reader, width, empty = csv.reader(file), 0, 0
    for cells in reader:
        if not cells:
            empty = empty or reader.line_num
            continue
        if empty:
            raise ValueError(f"{path}, line {empty}: the line is empty")
        width = width or len(cells)
        if len(cells) != width:
            raise ValueError(f"{path}, line {reader.line_num}: {len(cells)} cells, where the lines before have {width}")
        yield reader.line_num, cells


def _label_place(path: Path, first: list[str], column: str | int | None) -> tuple[int | None, bool]:
    """Find the column of the labels by its name in the header, which is then known to be one, or by its number."""
    if column is None:
        return None, False
    names = [cell.strip() for cell in first]
    if str(column) in names:
        return names.index(str(column)), True
    try:
        number = int(column)
    except ValueError:
        number = len(names)
    if not -len(names) <= number < len(names):
        raise ValueError(
            f"{path} has no column {column!r} for the labels: give a name of its first line, {', '.join(names[:10])}"
            f"{', …' if len(names) > 10 else ''}, or a number from 0 to {len(names) - 1}"
        )
    return number % len(names), False


def _array(path: Path, block: list[Line], numbers: bool, place: int | None) -> np.ndarray:
    try:
        if not numbers:
            return np.array([[_letter(cell) for cell in cells] for _, cells in block], dtype="U1")
        try:
            values = np.array([[int(cell) for cell in cells] for _, cells in block], dtype=np.int64)
        except ValueError:  # whole numbers may be written 1.0 or 1e0, as numpy.savetxt does
            values = np.array([[_whole(cell) for cell in cells] for _, cells in block], dtype=np.int64)
    except (ValueError, OverflowError) as error:
        _refuse(path, block, numbers, place, error)
    low, high = int(values.min()), int(values.max())
    types = (np.int8, np.int16, np.int32, np.int64)
    return values.astype(next(t for t in types if np.iinfo(t).min <= low and high <= np.iinfo(t).max))


def _refuse(path: Path, block: list[Line], numbers: bool, place: int | None, cause: Exception) -> NoReturn:
    """Name the first cell that is not what the others are."""
    number, cells = next(line for line in block if not all(_is_symbol(cell, numbers) for cell in line[1]))
    column = next(column for column, cell in enumerate(cells) if not _is_symbol(cell, numbers))
    beyond_labels = place is not None and column >= place
    raise ValueError(
        f"{path}, line {number}, column {column + 1 + beyond_labels}: {cells[column][:20]!r} is not "
        f"{'a whole number' if numbers else 'a single letter'} like the others; cells are separated by commas, and "
        "missing values are not supported"
    ) from cause


def _is_symbol(cell: str, numbers: bool) -> bool:
    try:
        return bool(_letter(cell)) if not numbers else -(2**63) <= _whole(cell) < 2**63
    except (ValueError, OverflowError):
        return False


def _whole(cell: str) -> int:
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


def _labels(tags: list[str]) -> np.ndarray:
    try:
        return np.array([int(tag) for tag in tags], dtype=np.int64)
    except (ValueError, OverflowError):
        return np.array(tags, dtype=str)


def _counts_columns(rows: np.ndarray) -> bool:
    """Whether the first row is the header 0, 1, 2, … that tables without column names are written with.

    As data it would be one row that counts its sites with symbols that do not occur again.
    """
    sites = rows.shape[1]
    if len(rows) <= sites or not np.array_equal(rows[0], np.arange(sites)):
        return False
    below = np.unique(rows[1:])
    return len(below) < sites and not np.isin(rows[0], below).all()
