"""Tables with gaps as text: read a block of lines at a time, their gaps filled, everything else left as it stands."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from neurise.cli._symbols import Known, known_symbols, site_names
from neurise.datasets.formats.columns import find_columns
from neurise.datasets.formats.csv import parsing
from neurise.datasets.formats.endings import TABLES, ending_of
from neurise.datasets.formats.missing import WORDS, as_word
from neurise.datasets.formats.open import open_text
from neurise.datasets.formats.table import delimiter_of
from neurise.frames import Table

if TYPE_CHECKING:
    from neurise.modeling.model import Model

BLOCK = 2**18
"""Cells that are filled at a time."""

Line = tuple[int, list[str]]
"""A line's number, from 1, and its cells."""


class GappyTable:
    """A text table, and which of its columns are the sites of a model."""

    def __init__(self, path: Path, model: Model, label_column: str | None) -> None:
        if ending_of(path) not in TABLES:
            raise ValueError(f"{path}: gaps are filled in tables, {' or '.join(TABLES)} (and .gz behind them)")
        if not path.is_file():
            raise FileNotFoundError(f"there is no file {path}")
        self.path, self.model, self.known = path, model, known_symbols(model)
        with parsing(path), open_text(path, newline="") as file:
            start = file.readline()
        self.delimiter = delimiter_of(path, start)
        first = next(csv.reader([start], delimiter=self.delimiter), [])
        if not first:
            raise ValueError(f"{path} is empty")
        self.width, self.names = len(first), [cell.strip() for cell in first]
        found = find_columns(path, first, label_column, None)
        self.label = found.label
        self.sites = self._sites(found.sites)
        here = zip(self.sites, self.known, strict=True)
        self.header = (
            None if all(self.names[place] in own or _is_gap(self.names[place], own) for place, own in here) else first
        )

    def _sites(self, columns: list[int]) -> list[int]:
        """Find the columns of the model: by their names, or all that are neither labels nor counts."""
        names = site_names(self.model)
        if names is not None and any(name in self.names for name in names):
            lacking = [name for name in names if name not in self.names]
            if lacking:
                raise ValueError(
                    f"{self.path} lacks {', '.join(map(repr, lacking))}; the model has the columns {', '.join(map(repr, names))}"
                )
            return [self.names.index(name) for name in names]
        if len(columns) != len(self.known):
            raise ValueError(f"{self.path} has {len(columns)} columns, and the model {len(self.known)} sites")
        return columns

    @property
    def others(self) -> list[str]:
        """The columns that are neither sites of the model nor labels: they stay as they are."""
        return [name for place, name in enumerate(self.names) if place not in (*self.sites, self.label)]

    def blocks(self) -> Iterator[list[Line]]:
        """Read the lines, a block at a time."""
        with parsing(self.path), open_text(self.path, newline="") as file:
            reader = csv.reader(file, delimiter=self.delimiter)
            lines = ((reader.line_num, cells) for cells in reader if cells)
            first = next(lines)
            rest = lines if self.header is not None else chain([first], lines)
            step = max(1, BLOCK // self.width)
            while block := list(islice(rest, step)):
                yield block

    def rows(self, block: Sequence[Line]) -> tuple[Any, np.ndarray, Any]:
        """Translate lines: rows of symbols as the model takes them, which cells are gaps, (N, sites), and labels."""
        values = np.empty((len(block), len(self.sites)), dtype=object)
        gaps = np.zeros(values.shape, dtype=bool)
        for row, (number, cells) in enumerate(block):
            if len(cells) != self.width:
                raise ValueError(
                    f"{self.path}, line {number}: cells: {len(cells)} here, {self.width} in the first line"
                )
            for site, (place, own) in enumerate(zip(self.sites, self.known, strict=True)):
                text = cells[place].strip() or cells[place]
                if text in own:
                    values[row, site] = own[text]
                elif _is_gap(text, own):
                    gaps[row, site] = True
                else:
                    raise ValueError(
                        f"{self.path}, line {number}, column {place + 1}: {text[:20]!r} is neither a gap nor a symbol that the "
                        f"model knows there: {own}"
                    )
        labels = None if self.label is None else [cells[self.label].strip() for _, cells in block]
        return self._as_the_model_takes_them(values, gaps), gaps, labels

    def _as_the_model_takes_them(self, values: np.ndarray, gaps: np.ndarray) -> Any:
        names = site_names(self.model)
        if names is not None:
            return Table(values, names)
        if hasattr(self.model.schema_.alphabet, "columns"):
            return values
        symbols = self.model.schema_.alphabet.symbols
        filled = np.where(gaps, symbols[0], values)
        return np.ma.array(np.array(filled.tolist(), dtype=symbols.dtype), mask=gaps)

    def filled(self, cells: list[str], row: Any, gaps: np.ndarray) -> list[str]:
        """Put the symbols of a row into the gaps of a line."""
        line = list(cells)
        for site in np.flatnonzero(gaps).tolist():
            line[self.sites[site]] = self.known[site].written(row[site])
        return line


def _is_gap(text: str, known: Known) -> bool:
    return text not in known and as_word(text) in WORDS
