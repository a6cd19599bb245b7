"""Tables of symbols as text: separated by commas or tabs, packed by gzip or not, read a block at a time."""

from __future__ import annotations

import csv
import re
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import chain, islice
from pathlib import Path
from typing import Any

import numpy as np

from neurise.datasets.formats import csv as _csv
from neurise.datasets.formats.columns import as_weights, count_of, find_columns, is_count
from neurise.datasets.formats.csv import Line, counts_columns, is_symbol, labels_of, may_be_names, parsing, symbols_of
from neurise.datasets.formats.digits import Digits
from neurise.datasets.formats.growing import Growing
from neurise.datasets.formats.histogram import Guess
from neurise.datasets.formats.missing import Missing
from neurise.datasets.formats.open import open_text


@dataclass(frozen=True)
class Table:
    """The rows of a table, (N, sites), with what else its columns hold."""

    rows: np.ndarray
    labels: np.ndarray | None = None
    weights: np.ndarray | None = None
    info: dict[str, Any] = field(default_factory=dict)


def read_table(
    path: Path,
    *,
    label_column: str | int | None = None,
    count_column: str | int | None = None,
    guess: bool = True,
    split: bool = True,
    missing: Missing | None = None,
) -> Table:
    """Read whole numbers or single letters, and the labels and the counts or weights of their own columns.

    The first line is a header where none of its cells is a symbol like those below. Numbers come in the smallest type
    that holds them all. With ``guess`` a histogram (see :mod:`neurise.datasets.formats.histogram`) is recognised, and with
    ``split`` a single column of bit strings (see :mod:`neurise.datasets.formats.digits`). Lines that lack a value are an error,
    or left to ``missing``.
    """
    for quick in (True, False) if missing is None else (False,):  # what is missing is counted once
        try:
            with parsing(path), open_text(path, newline="") as file:
                asked = (label_column, count_column)
                reader = _Reader(path, asked, Guess() if guess else None, split, missing, quick)
                return reader.read(file)
        except _LabelsAreText:
            continue
    raise AssertionError("the slow way knows every label")


def delimiter_of(path: Path, start: str) -> str:
    """Say what separates the cells: what the ending says, unless the first line has none of it and some of the other."""
    plain = re.sub(r'"[^"]*"?', "", start)
    usual, other = ("\t", ",") if ".tsv" in path.name.lower() else (",", "\t")
    return other if other in plain and usual not in plain else usual


class _LabelsAreText(Exception):
    """Labels that were read as numbers are text: 07 and 7 may be two of them."""


class _Reader:
    """Reads one table. Lines go through numpy where it understands them, and through Python where it does not."""

    def __init__(
        self,
        path: Path,
        asked: tuple[str | int | None, str | int | None],
        guess: Guess | None,
        split: bool,
        missing: Missing | None,
        quick: bool,
    ) -> None:
        self.path, self.asked, self.guess, self.split, self.missing = path, asked, guess, split, missing
        self.digits: Digits | None = None
        self.quick, self.line, self.numbers = quick, 0, True
        self.rows, self.tags, self.counts = Growing(), list[str | int](), list[np.ndarray]()

    def read(self, file: Iterable[str]) -> Table:
        """Read everything."""
        raw = iter(file)
        start = next(raw, "")
        self.delimiter = delimiter_of(self.path, start)
        raw = chain([start], raw)
        header = self._begin(self._lines(raw))
        step = max(1, _csv.BLOCK // self.columns.width)
        while self.quick and self.numbers and (lines := list(islice(raw, step))):
            if not self._take_quickly(lines):
                raw = chain(lines, raw)
                break
        rest = self._complete(self._lines(raw))
        while block := list(islice(rest, step)):
            self._take(block)
        if not len(self.rows):
            raise ValueError(f"{self.path} holds a header and nothing else")
        return self._table(header)

    def _begin(self, lines: Iterator[Line]) -> bool:
        """Look at the first two lines, and say whether the first is a header."""
        first = next(lines, None)
        if first is None:
            raise ValueError(f"{self.path} is empty")
        self.columns = find_columns(self.path, first[1], *self.asked)
        second = next(self._complete(lines), None)
        site = self.columns.sites[0]
        # The first cell of the second line sets what all of them must be.
        self.numbers = is_symbol((second or first)[1][site], numbers=True)
        symbols = any(is_symbol(first[1][site], self.numbers) for site in self.columns.sites)
        if self.split and len(self.columns.sites) == 1:
            self.digits = Digits.of((second or first)[1][site], first[1][site])
            symbols = symbols or (self.digits is not None and self.digits.fits(first[1][site]))
        header = self.columns.named or (second is not None and (not symbols or self._names_counts(first, second)))
        if header or not self.numbers or self.asked != (None, None) or len(self.columns.sites) == 1:
            self.guess = None
        if second is None and not header and not self.numbers:
            self._refuse_a_header_alone(first)
        self.quick = self.quick and self.digits is None
        block = [] if header else list(self._complete(iter([first])))
        if second is not None:
            block.append(second)
        if block:
            self._take(block)
        return header

    def _refuse_a_header_alone(self, line: Line) -> None:
        """One line of letters that all differ can be the names of columns as well as a row."""
        if self.digits is None and may_be_names([line[1][site].strip() for site in self.columns.sites]):
            raise ValueError(
                f"{self.path} has a single line, of different letters: it may be a header without rows; if it is a row, "
                "write a header above it"
            )

    def _names_counts(self, first: Line, second: Line) -> bool:
        """Whether the first line has a word where the second has a count."""
        count = self.columns.count
        return count is not None and is_count(second[1][count]) and not is_count(first[1][count])

    def _lines(self, raw: Iterator[str]) -> Iterator[Line]:
        """Number the lines and check that all have the same number of cells; empty lines may stand at the end only."""
        reader, before, empty = csv.reader(raw, delimiter=self.delimiter), self.line, 0
        width = self.columns.width if self.line else 0
        for cells in reader:
            self.line = before + reader.line_num
            if not cells:
                empty = empty or self.line
                continue
            if empty:
                raise ValueError(f"{self.path}, line {empty}: the line is empty")
            width = width or len(cells)
            if len(cells) != width:
                raise ValueError(
                    f"{self.path}, line {self.line}: cells: {len(cells)} here, {width} in the lines before"
                )
            yield self.line, cells

    def _complete(self, lines: Iterator[Line]) -> Iterator[Line]:
        missing = self.missing
        return lines if missing is None else (line for line in lines if not missing.skips(*line))

    def _take_quickly(self, lines: list[str]) -> bool:
        """Take plain whole numbers; whatever else there is, is left for later, and False says so."""
        width, text = self.columns.width, "".join(lines)
        if '"' in text or "\r" in text.replace("\r\n", ""):
            return False
        if any(line.count(self.delimiter) != width - 1 for line in lines):
            return False
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("error", DeprecationWarning)
                plain = text.replace("\r\n", "\n").replace("\n", self.delimiter)
                values = np.fromstring(plain, dtype=np.int64, sep=self.delimiter)
        except (ValueError, DeprecationWarning):
            return False
        # What does not fit into 64 bits comes back as the largest number that does.
        if values.size != len(lines) * width or np.abs(values).max() > 2**62:
            return False
        values = values.reshape(-1, width)
        label, count = self.columns.label, self.columns.count
        if count is not None:
            if values[:, count].min() < 0 or values[:, count].max() > 2**53:
                return False
            self.counts.append(values[:, count].astype(np.float64))
        if label is not None:
            self.tags.extend(values[:, label].tolist())
        self.line += len(lines)
        self._add(values[:, self.columns.sites] if label is not None or count is not None else values)
        return True

    def _take(self, block: list[Line]) -> None:
        columns = self.columns
        if columns.count is not None:
            counts = (
                count_of(self.path, number, columns.count, cells[columns.count], only_whole=columns.whole)
                for number, cells in block
            )
            self.counts.append(np.fromiter(counts, np.float64, len(block)))
        if columns.label is not None:
            self.tags.extend(cells[columns.label].strip() for _, cells in block)
        cells = block
        if len(columns.sites) < columns.width:
            cells = [(number, [cells[site] for site in columns.sites]) for number, cells in block]
        if self.digits is not None:
            split = self.digits.take([texts[0] for _, texts in cells])
            if split is not None:
                self.rows.add(split)
                return
            self._join(self.digits, cells)
        self._add(symbols_of(self.path, cells, columns.sites, self.delimiter, numbers=self.numbers))

    def _add(self, values: np.ndarray) -> None:
        if self.guess is not None:
            rest = self.guess.take(values)
            if rest is not None:
                self.rows.add(rest)
                return
            self._put_back(self.guess)
        self.rows.add(values)

    def _join(self, digits: Digits, block: list[Line]) -> None:
        """Make numbers of the digits again: they are no strings of one length."""
        if digits.sure:
            number, texts = next(line for line in block if not digits.fits(line[1][0]))
            raise ValueError(
                f"{self.path}, line {number}, column {self.columns.sites[0] + 1}: {texts[0][:20]!r} is no string of "
                f"{digits.width} digits like those before"
            )
        self.digits = None
        if len(self.rows):
            held, self.rows = self.rows.array(), Growing()
            self._add(digits.numbers(held))

    def _put_back(self, guess: Guess) -> None:
        """Make the first column symbols again: it does not count."""
        if len(self.rows):
            held, counts, self.rows = self.rows.array(), guess.counts, Growing()
            step = max(1, _csv.BLOCK // self.columns.width)
            for start in range(0, len(held), step):
                part = slice(start, start + step)
                self.rows.add(np.column_stack([counts[part], held[part]]))
        self.guess = None

    def _table(self, header: bool) -> Table:
        info: dict[str, Any] = {} if self.missing is None else {"missing": self.missing.to_dict()}
        if self.missing is not None and self.missing.cells:
            info["missing where"] = self.missing.where(len(self.rows))
        counts = as_weights(self.counts, only_whole=self.columns.whole) if self.counts else None
        if self.digits is not None and not self.digits.sure:
            self._join(self.digits, [])
        if self.digits is not None:
            info["bitstrings"] = "named" if self.digits.named else "recognised"
        if self.guess is not None and not self.guess.holds():
            self._put_back(self.guess)
        if self.guess is not None:
            counts, info["histogram"] = self.guess.counts, True
        labels = None if self.columns.label is None else labels_of(self.tags)
        if labels is not None and labels.dtype.kind == "U" and any(isinstance(tag, int) for tag in self.tags):
            raise _LabelsAreText
        rows = self.rows.array()
        # A header that counts the columns counts all of them: its 0 stands above the first.
        symbols_first = self.guess is None and self.digits is None and self.columns.sites[0] == 0
        begin = int(not header and symbols_first and counts_columns(rows))
        labels, counts = (None if part is None else part[begin:] for part in (labels, counts))
        return Table(rows[begin:], labels, counts, info)
