"""Tables of words and numbers with a header: every column has a name, a kind and symbols of its own."""

from __future__ import annotations

import csv
import re
from collections.abc import Collection, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from neurise.datasets.formats.columns import as_weights, count_of, find_columns
from neurise.datasets.formats.csv import Line, is_symbol, labels_of, parsing, whole
from neurise.datasets.formats.missing import WORDS, Missing, as_word
from neurise.datasets.formats.open import open_text
from neurise.datasets.formats.table import Table, delimiter_of
from neurise.frames import Table as NamedRows

NUMBERED = re.compile(r"s\d+")
"""Names that rows without names are written under."""


def holds_words(path: Path, label_column: str | int | None = None, count_column: str | int | None = None) -> bool:
    """Whether a table has a header of names, and below it words, or letters, or columns of different kinds.

    A table of whole numbers alone has one alphabet for all columns, whatever its header and its labels are.
    """
    try:
        with open_text(path, newline="") as file:
            start = "".join(islice(file, 2))
        lines = list(csv.reader(start.splitlines(), delimiter=delimiter_of(path, start)))
    except (csv.Error, ValueError):
        return False  # who reads all of it will say what is wrong
    if len(lines) < 2 or not _are_names(lines[0]) or len(lines[0]) != len(lines[1]) or len(lines[0]) < 2:
        return False
    try:
        sites = find_columns(path, lines[0], label_column, count_column).sites
    except ValueError:
        return False
    if all(NUMBERED.fullmatch(lines[0][site].strip()) for site in sites):
        return False
    cells = [lines[1][site].strip() for site in sites]
    return any(not is_symbol(cell, numbers=True) for cell in cells if as_word(cell) not in WORDS)


def read_gaps(path: Path, word: str | None) -> np.ndarray | None:
    """Read whole numbers or letters without a header, some of which are missing: NaN among numbers, None among letters.

    None where it is no such table, or nothing is missing in it.
    """
    with parsing(path), open_text(path, newline="") as file:
        start = file.readline()
        lines = list(csv.reader([start, *file], delimiter=delimiter_of(path, start)))
    lines = [cells for cells in lines if cells]
    if not lines or len({len(cells) for cells in lines}) > 1:
        return None
    texts = np.array([[cell.strip() for cell in cells] for cells in lines], dtype=object)
    named = None if word is None else word.strip().lower()
    numbers = all(
        is_symbol(cell, numbers=True) for cell in texts.ravel().tolist() if as_word(cell) not in {*WORDS, named}
    )
    known = {*WORDS, named} if numbers or named == "?" else {*WORDS, named} - {"?"}  # which is a letter as well
    gone = np.array([[as_word(cell) in known for cell in cells] for cells in texts.tolist()])
    present = texts[~gone].tolist()
    if not gone.any() or not present or (named is not None and named not in {as_word(text) for text in texts[gone]}):
        return None
    if numbers:
        rows: np.ndarray = np.full(texts.shape, np.nan)
        rows[~gone] = [whole(cell) for cell in present]
        return rows
    if all(is_symbol(cell, numbers=False) for cell in present):
        texts[gone] = None
        return texts
    return None


def has_names(path: Path) -> bool:
    """Whether a table begins with the names of its columns."""
    with parsing(path), open_text(path, newline="") as file:
        start = file.readline()
        return _are_names(next(csv.reader([start], delimiter=delimiter_of(path, start)), []))


def _are_names(cells: Sequence[str]) -> bool:
    """Whether cells can only be names of columns: all different, none a number, and some longer than a letter."""
    names = [cell.strip() for cell in cells]
    distinct = len(set(names)) == len(names) and all(names)
    return distinct and any(len(name) > 1 for name in names) and not any(_is_number(name) for name in names)


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def read_words(
    path: Path,
    *,
    label_column: str | int | None = None,
    count_column: str | int | None = None,
    drop: Collection[str] = (),
    missing: Missing | None = None,
    word: str | None = None,
) -> Table:
    """Read the columns of a table with a header, without those that are dropped.

    A column is of whole numbers or of numbers where all of its cells are, else of text. Cells that hold no value are None, or
    their lines are left out where ``missing`` counts them. ``word`` stands for a missing value too, where it is given.
    """
    with parsing(path), open_text(path, newline="") as file:
        start = file.readline()
        reader = csv.reader(file, delimiter=delimiter_of(path, start))
        header = next(csv.reader([start], delimiter=delimiter_of(path, start)), [])
        names = [cell.strip() for cell in header]
        if not all(names) or len(set(names)) < len(names):
            raise ValueError(
                f"{path}: a table of columns begins with their names, all different; its first line is {names[:10]}"
            )
        if strange := [name for name in drop if name not in names]:
            raise ValueError(f"{path} has no column {strange[0]!r} to drop; there are {', '.join(names)}")
        columns = find_columns(path, header, label_column, count_column)
        lines = list[Line]()
        for cells in reader:
            if not cells:
                continue
            number = reader.line_num + 1
            if len(cells) != len(names):
                raise ValueError(f"{path}, line {number}: cells: {len(cells)} here, {len(names)} in the header")
            if missing is None or not missing.skips(number, cells):
                lines.append((number, cells))
    if not lines:
        raise ValueError(f"{path} holds a header and nothing else")
    kept = [place for place in columns.sites if names[place] not in drop]
    if not kept:
        raise ValueError(f"{path} has no column left: {', '.join(drop)} are dropped")
    rows = np.empty((len(lines), len(kept)), dtype=object)
    for place, column in enumerate(kept):
        rows[:, place] = _values(["" if cells[column].strip() == word else cells[column].strip() for _, cells in lines])
    labels = counts = None
    if columns.label is not None:
        labels = labels_of([cells[columns.label].strip() for _, cells in lines])
    if columns.count is not None:
        found = [count_of(path, n, columns.count, cells[columns.count], only_whole=columns.whole) for n, cells in lines]
        counts = as_weights([np.array(found)], only_whole=columns.whole)
    info: dict[str, Any] = {} if missing is None else {"missing": missing.to_dict()}
    return Table(NamedRows(rows, [names[column] for column in kept]), labels, counts, info)


def _values(cells: list[str]) -> list[Any]:
    """Read the cells of a column as whole numbers, as numbers, or as text; None where there is no value."""
    gone = [as_word(cell) in WORDS for cell in cells]
    for kind in (int, float):
        try:
            numbers = [None if none else kind(cell) for cell, none in zip(cells, gone, strict=True)]
        except ValueError:
            continue
        # 007 is a name, not a number, and so is nothing at all.
        if kind is float or not any(cell.lstrip("+-")[:1] == "0" and len(cell.lstrip("+-")) > 1 for cell in cells):
            return numbers
        break
    return [None if none else cell for cell, none in zip(cells, gone, strict=True)]
