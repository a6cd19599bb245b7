"""``neurise sample --like``: as many rows as a table has, in its columns, their order, and its kind of file."""

from __future__ import annotations

import csv
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

import numpy as np

from neurise.cli._data import load, split, with_columns
from neurise.datasets.formats.columns import find_columns
from neurise.datasets.formats.csv import as_cells
from neurise.datasets.formats.endings import FASTA, TABLES, ending_of, is_packed
from neurise.datasets.formats.fasta import write_fasta
from neurise.datasets.formats.open import create_text, open_text
from neurise.datasets.formats.table import delimiter_of
from neurise.datasets.formats.writing import write_dataset
from neurise.files import write_atomically
from neurise.frames import Table, as_table, frame_kind

if TYPE_CHECKING:
    from neurise.dataset import Dataset
    from neurise.modeling.model import Model


@dataclass(frozen=True)
class Form:
    """How the lines of a text table look: what separates cells, the header if there is one, and where what stands."""

    delimiter: str
    header: list[str] | None
    label: int | None
    count: int | None
    sites: list[int]  # the columns of the line that hold symbols
    strings: bool  # one column of strings, a digit for each site

    def write(self, file: TextIO, cells: Sequence[Sequence[Any]], labels: Any, counts: Any) -> None:
        """Write rows with what belongs to them in its own columns."""
        writer = csv.writer(file, delimiter=self.delimiter, lineterminator="\n")
        if self.header is not None:
            writer.writerow(self.header)
        width = len(self.sites) + (self.label is not None) + (self.count is not None)
        places = sorted([*self.sites, *(place for place in (self.label, self.count) if place is not None)])
        at = {place: number for number, place in enumerate(places)}
        for row, own in enumerate(cells):
            line: list[Any] = [""] * width
            for site, cell in zip(self.sites, own, strict=True):
                line[at[site]] = cell
            if self.label is not None:
                line[at[self.label]] = labels[row]
            if self.count is not None:
                line[at[self.count]] = counts[row]
            writer.writerow(line)


class Like:
    """A table that drawn rows are to look like."""

    def __init__(self, path: Path, data: Dataset, form: Form | None) -> None:
        self.path, self.data, self.form = path, data, form
        assert data.train is not None
        counts = data.weights
        self.number = len(data.train) if counts is None else int(counts.sum())
        self.labels: Any = data.labels if counts is None or data.labels is None else np.repeat(data.labels, counts)

    def write(self, output: Path | None, rows: Any) -> None:
        """Write drawn rows as the table is written, to a file or to the screen."""
        symbols, labels, counts = self._arranged(rows), self.labels, None
        if self.data.weights is not None:
            symbols, labels, counts = _counted(symbols, labels)
        if self.form is None and ending_of(self.path) not in FASTA:
            assert output is not None
            drawn = replace(self.data, train=symbols, labels=labels, weights=counts, **_NOTHING_ELSE)
            write_dataset(output, drawn)
            return
        if output is None:
            self._write_text(sys.stdout, symbols, labels, counts)
            return

        def write(place: Path) -> None:
            with create_text(place, packed=is_packed(output)) as file:
                self._write_text(file, symbols, labels, counts)

        write_atomically(output, write)

    def _write_text(self, file: TextIO, rows: np.ndarray, labels: Any, counts: Any) -> None:
        if self.form is None:
            write_fasta(file, rows)
            return
        cells = (np.asarray(rows) if isinstance(rows, Table) else as_cells(rows)).tolist()
        if self.form.strings:
            cells = [["".join(map(str, row))] for row in cells]
        self.form.write(file, cells, labels, counts)

    def _arranged(self, rows: Any) -> np.ndarray:
        """Put the columns in the order of the table, in its type of numbers."""
        own = self.data.train
        assert own is not None
        if isinstance(own, Table):
            drawn = as_table(rows) if frame_kind(rows) else Table(np.asarray(rows), own.names)
            return Table(np.asarray(drawn)[:, [drawn.names.index(name) for name in own.names]], own.names)
        matrix = np.asarray(rows)
        same = matrix.dtype.kind in "biuf" and own.dtype.kind in "biuf"
        return matrix.astype(own.dtype) if same and np.array_equal(matrix.astype(own.dtype), matrix) else matrix


_NOTHING_ELSE: dict[str, Any] = dict.fromkeys(
    ("validation", "validation_labels", "validation_weights", "test", "test_labels", "test_weights", "law", "draw"),
    None,
)


def read_like(
    text: str, model: Model, label_column: str | None, count_column: str | None, drop_column: list[str] | None
) -> Like:
    """Read the table, and see that the model fits it: its columns, its symbols, its labels."""
    name, texts = split(text)
    path = Path(name)
    if not path.is_file():
        raise FileNotFoundError(f"--like {name}: there is no such file")
    ending = ending_of(path)
    texts = {"theta": "none", **texts} if ending in FASTA else texts
    data = load(name, with_columns(name, texts, label_column, count_column, drop_column))
    if data.train is None:
        raise ValueError(f"--like {name} has no rows")
    _check(text, data, model)
    form = _form(path, data, label_column, count_column, drop_column or []) if ending in TABLES else None
    return Like(path, data, form)


def check_output(like: Path, output: Path | None) -> None:
    """Refuse an output of another kind than the table; arrays are not printed to the screen."""
    ending = ending_of(like)
    if output is None:
        if ending not in (*TABLES, *FASTA):
            raise ValueError(f"--like {like}: rows in {ending} need a file to be written to, -o rows{ending}")
        return
    alike = ending_of(output) == ending or {ending_of(output), ending} <= set(FASTA)
    if not alike:
        raise ValueError(f"--like {like} writes {ending} files, and {output} is another kind; name it …{ending}")


def _check(text: str, data: Dataset, model: Model) -> None:
    schema, rows = model.schema_, data.train
    what = f"--like {text}"
    if hasattr(schema.alphabet, "read"):
        schema.alphabet.read(rows, what)  # a table may have gaps: they are not asked for
    else:
        schema.encode(rows, what)
    if data.labels is not None:
        if schema.labels is None:
            raise ValueError(
                f"{what} has labels, and the model was fitted without; fit one with them, or leave them out"
            )
        schema.encode_labels(data.labels, len(data.labels))
    if data.weights is not None and not (data.weights == np.round(data.weights)).all():
        raise ValueError(f"{what} weighs its rows, and drawn rows have no weights; counts are whole numbers")


def _form(path: Path, data: Dataset, label_column: str | None, count_column: str | None, drop: list[str]) -> Form:
    """Look at the first line: is it a header, and which columns hold labels and counts?"""
    with open_text(path, newline="") as file:
        start = file.readline()
    delimiter = delimiter_of(path, start)
    first = next(csv.reader([start], delimiter=delimiter))
    strings = "bitstrings" in data.info
    histogram = bool(data.info.get("histogram"))
    columns = find_columns(path, first, label_column, "0" if histogram else count_column)
    names = [cell.strip() for cell in first]
    sites = [site for site in columns.sites if names[site] not in drop or not isinstance(data.train, Table)]
    assert data.train is not None
    top = data.train[0].tolist() if isinstance(data.train, Table) else as_cells(data.train[:1])[0].tolist()
    shown = [str(cell) for cell in top]
    begins = ["".join(shown)] if strings else shown
    header = first if [names[site] for site in sites] != begins else None
    if header is not None and drop:
        kept = {*sites, columns.label, columns.count}
        header = [cell for place, cell in enumerate(first) if place in kept]
    return Form(delimiter, header, columns.label, columns.count, sites, strings)


def _counted(rows: np.ndarray, labels: Any) -> tuple[np.ndarray, Any, np.ndarray]:
    """Put equal rows of one label together, in the order in which they first appear, with their number."""
    keys = [(*row, None if labels is None else labels[place]) for place, row in enumerate(np.asarray(rows).tolist())]
    counts: dict[Any, int] = {}
    first: dict[Any, int] = {}
    for place, key in enumerate(keys):
        counts[key] = counts.get(key, 0) + 1
        first.setdefault(key, place)
    chosen = np.array(list(first.values()))
    return rows[chosen], None if labels is None else np.asarray(labels)[chosen], np.array(list(counts.values()))
