"""Data sets and rows as files: whole, or not at all."""

from __future__ import annotations

import csv
from collections.abc import Callable, Collection, Mapping
from functools import partial
from pathlib import Path
from typing import Any, TextIO

import numpy as np

from neurise.alphabet import as_matrix
from neurise.dataset import Dataset
from neurise.datasets.formats.archive import OF_INFO, write_npz
from neurise.datasets.formats.csv import BLOCK, as_cells, counts_columns, may_be_names, quoting_of, write_csv
from neurise.datasets.formats.endings import FASTA, TABLES, WRITTEN, ending_of, is_packed, listed
from neurise.datasets.formats.fasta import write_fasta
from neurise.datasets.formats.histogram import looks_counted
from neurise.datasets.formats.open import create_text
from neurise.files import write_atomically
from neurise.frames import Table as NamedRows


def check_ending(path: str | Path) -> None:
    """Refuse a file name that rows cannot be written to, before any work is done for it."""
    ending = ending_of(Path(path))
    if ending not in WRITTEN:
        why = "a text does not say where a row ends" if ending == ".txt" else f"rows are not written to {ending} files"
        raise ValueError(f"{path}: {why}; use one of {listed(WRITTEN)}")


def check_beside(path: str | Path, names: Collection[str]) -> None:
    """Refuse a file that cannot hold numbers of those names beside its rows."""
    if names and ending_of(Path(path)) not in (".npz", *TABLES):
        raise ValueError(
            f"{path} holds rows alone; {' and '.join(names)} can be written to .npz, {' or '.join(TABLES)}"
        )


def write_rows(path: str | Path, rows: Any, beside: Mapping[str, np.ndarray] | None = None) -> None:
    """Write rows, (N, sites), as ``.npy``, ``.npz`` (named ``X``), ``.csv``, ``.tsv`` or ``.fasta``: whole, or not at all.

    ``beside`` are numbers of each row, by name: the first columns of a table, which gets a header then, or arrays ``info.NAME``
    of an ``.npz`` file, which reading gives back in ``info``.
    """
    if isinstance(rows, NamedRows):
        _write_words(Path(path), rows, dict(beside or {}))
        return
    place, matrix, more = Path(path), as_matrix(rows, "rows"), dict(beside or {})
    check_ending(place)
    check_beside(place, more)
    ending = ending_of(place)
    if ending == ".npy":
        write: Callable[[Path], None] = partial(_write_npy, rows=matrix)
    elif ending == ".npz":
        write = partial(_write_npz, rows=matrix, beside=more)
    elif more:
        write = partial(_write_beside, rows=matrix, beside=more, delimiter=_delimiter(ending))
    elif ending in FASTA:
        write = partial(_write_fasta, rows=matrix, names=None)
    else:
        write = partial(_write_table, rows=matrix, labels=None, weights=None, delimiter=_delimiter(ending))
    _write(place, write)


def _write_words(place: Path, rows: NamedRows, beside: Mapping[str, np.ndarray]) -> None:
    """Write a table of columns with its header."""
    ending = ending_of(place)
    if ending not in TABLES:
        raise ValueError(f"{place}: a table of words is written as {' or '.join(TABLES)}")

    def write(path: Path) -> None:
        with create_text(path, packed=is_packed(path)) as file:
            write_words(file, rows, beside, _delimiter(ending))

    _write(place, write)


def write_words(
    file: TextIO, rows: NamedRows, beside: Mapping[str, np.ndarray] | None = None, delimiter: str = ","
) -> None:
    """Write a header, and each row behind the numbers that belong to it; a value that is missing is an empty cell."""
    more = dict(beside or {})
    writer = csv.writer(file, delimiter=delimiter, lineterminator="\n")
    writer.writerow([*more, *rows.names])
    front = np.empty((len(rows), len(more)), dtype=object)
    for place, values in enumerate(more.values()):
        front[:, place] = values
    writer.writerows(np.concatenate([front, np.asarray(rows)], axis=1).tolist())


def write_dataset(path: str | Path, dataset: Dataset, *, kind: str | None = None) -> None:
    """Write a data set; :func:`neurise.datasets.files` reads it back.

    - ``.npz`` holds everything: all splits with their labels and weights, the pmf where it has at most 2^22 entries, edges,
      couplings, fields, shape, symbols, and ``info``.
    - ``.csv`` and ``.tsv`` hold the training rows, with a header where there are labels (column ``label``) or weights
      (``count`` where they are whole, else ``weight``). With ``kind="histogram"`` the count comes first and there is no header.
    - ``.fasta`` holds the training rows and their names; weights are computed anew when it is read.
    - ``.npy`` holds the training rows, and ``.txt`` all of them in one line: read it with ``window=`` the number of sites.
    """
    place, rows = Path(path), dataset.train
    ending = ending_of(place)
    if ending != ".txt":
        check_ending(place)
    if kind not in (None, "histogram") or (kind and ending not in TABLES):
        raise ValueError(
            f"kind must be left out or be 'histogram', for {' or '.join(TABLES)}; got {kind!r} for {place}"
        )
    if rows is None:
        raise ValueError(
            f"{dataset.name} has no rows; draw some first: dataclasses.replace(data, train=data.sample(n, seed))"
        )
    if isinstance(rows, NamedRows):
        own = {"label": dataset.labels, "count": dataset.weights}
        _write_words(place, rows, {name: values for name, values in own.items() if values is not None})
        return
    if ending == ".npz":
        write: Callable[[Path], None] = partial(write_npz, dataset=dataset, rows=rows)
    elif ending == ".npy":
        write = partial(_write_npy, rows=rows)
    elif ending in FASTA:
        write = partial(_write_fasta, rows=rows, names=dataset.info.get("sequences"))
    elif ending == ".txt":
        write = partial(_write_letters, rows=rows)
    elif kind == "histogram":
        write = partial(_write_histogram, rows=rows, weights=dataset.weights, delimiter=_delimiter(ending))
    else:
        write = partial(
            _write_table, rows=rows, labels=dataset.labels, weights=dataset.weights, delimiter=_delimiter(ending)
        )
    _write(place, write)


def _write(place: Path, write: Callable[[Path], None]) -> None:
    try:
        write_atomically(place, write)
    except OSError as error:
        reason = error.strerror or f"{error}; is the disk full?"
        raise OSError(f"cannot write {place}: {reason}") from error


def _write_npy(path: Path, rows: np.ndarray) -> None:
    with path.open("wb") as file:
        np.save(file, rows, allow_pickle=False)


def _write_npz(path: Path, rows: np.ndarray, beside: Mapping[str, np.ndarray]) -> None:
    arrays = {"X": rows, **{OF_INFO + name: values for name, values in beside.items()}}
    with path.open("wb") as file:
        np.savez(file, **arrays)  # type: ignore[arg-type]


def _write_beside(path: Path, rows: np.ndarray, beside: Mapping[str, np.ndarray], delimiter: str) -> None:
    with create_text(path, packed=is_packed(path)) as file:
        write_table(file, rows, beside, delimiter)


def write_table(file: TextIO, rows: np.ndarray, beside: Mapping[str, np.ndarray], delimiter: str = ",") -> None:
    """Write a header, and each row behind the numbers that belong to it."""
    sites = [f"s{site}" for site in range(rows.shape[1])]
    csv.writer(file, delimiter=delimiter, lineterminator="\n").writerow([*beside, *sites])
    if beside:
        _write_lines(file, rows, list(beside.values()), delimiter)
    else:
        write_csv(file, rows, delimiter)


def _write_fasta(path: Path, rows: np.ndarray, names: list[str] | None) -> None:
    with create_text(path, packed=is_packed(path)) as file:
        write_fasta(file, rows, names)


def _write_letters(path: Path, rows: np.ndarray) -> None:
    if rows.dtype.kind not in "US":
        raise ValueError(f"a text holds letters, and the rows are of type {rows.dtype}; write .csv or .npz")
    with create_text(path, packed=is_packed(path)) as file:
        for row in rows.astype("U1").tolist():
            file.write("".join(row))


def _write_histogram(path: Path, rows: np.ndarray, weights: np.ndarray | None, delimiter: str) -> None:
    counts = np.ones(len(rows), dtype=np.int64) if weights is None else weights
    if not _are_counts(counts):
        raise ValueError("a histogram holds whole counts, and the weights are not; write .csv without kind=, or .npz")
    with create_text(path, packed=is_packed(path)) as file:
        _write_lines(file, rows, [counts.astype(np.int64)], delimiter)


def _write_table(
    path: Path, rows: np.ndarray, labels: np.ndarray | None, weights: np.ndarray | None, delimiter: str
) -> None:
    columns, names = list[np.ndarray](), list[str]()
    if labels is not None:
        columns, names = [labels], ["label"]
    if weights is not None:
        whole = _are_counts(weights)
        columns, names = (
            [*columns, weights.astype(np.int64 if whole else float)],
            [*names, "count" if whole else "weight"],
        )
    # A header also tells rows apart that would be taken for something else without it.
    header = columns or looks_counted(rows) or counts_columns(rows) or _looks_named(rows)
    with create_text(path, packed=is_packed(path)) as file:
        if header:
            write_table(file, rows, dict(zip(names, columns, strict=True)), delimiter)
        else:
            write_csv(file, rows, delimiter)


def _looks_named(rows: np.ndarray) -> bool:
    """Whether rows would be taken for the names of columns: a single one of different letters."""
    return len(rows) == 1 and rows.dtype.kind in "US" and may_be_names(as_cells(rows)[0].tolist())


def _write_lines(file: TextIO, rows: np.ndarray, columns: list[np.ndarray], delimiter: str) -> None:
    """Write rows behind other columns, a block at a time."""
    writer = csv.writer(file, delimiter=delimiter, lineterminator="\n", quoting=quoting_of(rows))
    step = max(1, BLOCK // rows.shape[1])
    for start in range(0, len(rows), step):
        part = slice(start, start + step)
        front = zip(*(column[part].tolist() for column in columns), strict=True)
        writer.writerows([*before, *row] for before, row in zip(front, as_cells(rows[part]).tolist(), strict=True))


def _are_counts(weights: np.ndarray) -> bool:
    return bool(weights.dtype.kind in "biu" or (weights == np.floor(weights)).all())


def _delimiter(ending: str) -> str:
    return "\t" if ending == ".tsv" else ","
