"""Data in files: arrays, tables, alignments, histograms and texts. Nothing is ever unpickled."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

from neurise import devices, gaps
from neurise.alphabet import Alphabet, as_matrix
from neurise.dataset import Dataset
from neurise.datasets._annealers.reads_npz import holds_reads
from neurise.datasets.dwave import dwave
from neurise.datasets.formats.archive import KEYS, read_npz
from neurise.datasets.formats.arrays import read_npy
from neurise.datasets.formats.counts import holds_counts, read_counts
from neurise.datasets.formats.endings import ARRAYS, ARROW, ENDINGS, FASTA, JSON, STOCKHOLM, TABLES, ending_of, listed
from neurise.datasets.formats.fasta import read_fasta, sequence_weights
from neurise.datasets.formats.missing import Missing, word_of
from neurise.datasets.formats.open import begins_like_fasta
from neurise.datasets.formats.table import read_table
from neurise.datasets.formats.text import read_windows
from neurise.datasets.formats.truth import restore
from neurise.datasets.formats.unpacking import at_most
from neurise.datasets.formats.words import has_names, holds_words, read_gaps, read_words
from neurise.datasets.formats.writing import check_beside, check_ending, write_dataset, write_rows
from neurise.enumeration import draw_from_law
from neurise.frames import Table as NamedRows
from neurise.frames import as_table
from neurise.laws import as_law
from neurise.space import MAX_STATES, Space
from neurise.stored import open_rows

__all__ = ["ENDINGS", "KEYS", "check_beside", "check_ending", "files", "holds_reads", "write_dataset", "write_rows"]

BLOCK = 2**22
"""Cells that are looked at together: their symbols' codes take eight bytes each."""

KINDS = ("table", "columns", "histogram", "fasta", "text", "counts")
OF_KIND = {
    "label_column": ("table", "columns", ".npz", *ARROW),
    "count_column": ("table", "columns", *ARROW),
    "drop_column": ("columns", *ARROW),
    "missing": ("table", "columns", "histogram"),
    "alphabet": ("fasta",),
    "theta": ("fasta",),
    "inserts": ("fasta",),
    "endian": ("counts",),
    "bits": ("counts",),
    "states": ("counts",),
    "window": ("text",),
    "stride": ("text",),
    "join_spaces": ("text",),
}
"""Which files an option is for."""
DEFAULTS: dict[str, Any] = {"missing": "keep", "alphabet": "protein", "theta": 0.8, "join_spaces": False}
DEFAULTS |= {"inserts": "auto", "endian": "big", "states": 2}


def files(
    path: str | Path,
    *,
    label_column: str | int | None = None,
    count_column: str | int | None = None,
    drop_column: str | Sequence[str] | None = None,
    kind: str | None = None,
    missing: str = "keep",
    alphabet: str = "protein",
    theta: float | None = 0.8,
    inserts: str = "auto",
    endian: str = "big",
    bits: int | None = None,
    states: int = 2,
    window: int | None = None,
    stride: int | None = None,
    join_spaces: bool = False,
    max_unpacked: int | str | None = None,
) -> Dataset:
    """Read a data set from a file; its ending says how, and where that does not fit, its content or ``kind``.

    - ``.npy``: rows, (N, sites).
    - ``.npz``: rows as ``X``, ``train`` or ``samples`` (or the only array); besides them ``y`` or ``labels``,
      ``weights`` or ``counts``; ``test`` and ``validation``, each with its ``…_labels`` and ``…_weights``; ``pmf``, all
      p^q probabilities, first site most significant; ``alphabet``, all symbols in the order of the pmf's digits
      (sorted where none is given); and what :func:`write_dataset` writes besides: ``edges``, ``couplings``, ``fields``,
      ``offset``, ``shape``, ``info``. A file of an annealer's reads is known by its names (``num_occurrences``,
      ``energies``, …) and read as :func:`neurise.datasets.dwave` reads it, a fifth of the reads for testing.
    - ``.csv``, ``.tsv`` (``kind="table"``): whole numbers or single letters, with or without a header. A column whose name is
      ``label`` holds the labels; ``count`` how often a row was seen; ``weight`` what it weighs. ``label_column`` and
      ``count_column`` name others, or give their numbers from 0 (``label_column`` also names an array of a ``.npz`` file).
      A single column of symbols, as in ``bitstring,count``, may hold strings of digits, 0010 say: one site per digit.
      Cells that are empty or hold NA, NaN, null, none or (among numbers) ? are missing values; ``missing="?"``, or any
      other word, names what else stands for one. They stay missing: NaN or None. ``missing="drop"`` leaves out lines that
      lack a value and says in ``info["missing"]`` how many and where, and ``missing="error"`` refuses them.
    - ``kind="columns"``: a table with a header whose columns have alphabets of their own: words, letters, numbers. It is
      recognised without being named where there are words, or letters, below the names. ``train`` is an array of objects
      with ``names`` then, and ``drop_column`` leaves columns out, "id,name" say.
    - ``kind="histogram"``: a table whose first column counts its rows. It is recognised without being named (a warning
      says so) where there is no header, the first column is positive and not always 1, and the others are ±1 or 0/1.
    - ``.fasta``, ``.fa``, ``.faa``, ``.a2m``, ``.a3m``, ``.sto``, ``.stk`` (``kind="fasta"``): aligned sequences of an
      ``alphabet``, ``"protein"``, ``"dna"`` or ``"rna"``
      (see :func:`read_fasta` for gaps, ``inserts`` and letters that are not known). A row weighs 1 / number of rows that
      agree with it on a share ``theta`` of the sites; ``theta=None`` leaves all weights equal.
    - ``.txt`` (``kind="text"``): windows of ``window`` characters, ``stride`` apart (see :func:`read_windows`).

    - ``.json`` (``kind="counts"``): counts of bit strings, ``{"0101": 37}``, or a list of bit strings. ``endian``, ``bits`` and
      ``states`` are those of :func:`neurise.counts`. A file of an annealer's reads is known by its names and read as
      :func:`neurise.datasets.dwave` reads it.
    - ``.parquet``, ``.arrow``, ``.feather``: a table, read into memory; :func:`neurise.open_rows` leaves it on disk.

    Any text may be packed by gzip. What a packed file unpacks to is limited to 4 GB, or a quarter of the free memory where
    that is less; ``max_unpacked``, ``"8GB"`` say, or the environment variable ``NEURISE_MAX_UNPACKED`` sets another limit.

    >>> import neurise, numpy as np
    >>> import tempfile
    >>> path = tempfile.mkdtemp() + '/rows.csv'
    >>> np.savetxt(path, [[0, 1], [1, 0], [1, 1]], fmt='%d', delimiter=',')
    >>> neurise.datasets.files(path).train.tolist()
    [[0, 1], [1, 0], [1, 1]]
    """
    place = Path(path)
    if place.is_dir():
        raise ValueError(
            f"{place} is a folder; a file that ends in {', '.join(ENDINGS)} is needed. neurise.open_rows takes folders"
        )
    if kind is not None and kind not in KINDS:
        raise ValueError(f"kind must be one of {', '.join(map(repr, KINDS))}, got {kind!r}")
    if kind is None:
        ending_of(place)
    if not place.exists():
        raise FileNotFoundError(f"there is no file {place}")
    options = {
        "label_column": label_column,
        "count_column": count_column,
        "drop_column": drop_column,
        "missing": missing,
        "alphabet": alphabet,
        "theta": theta,
        "inserts": inserts,
        "endian": endian,
        "bits": bits,
        "states": states,
        "window": window,
        "stride": stride,
        "join_spaces": join_spaces,
    }
    with at_most(max_unpacked):
        what = kind or _recognised(place, window)
        if what == "table" and kind is None and holds_words(place, label_column, count_column):
            what = "columns"
        _refuse_others(place, what, options)
        if what == ".npz" and label_column is None and holds_reads(place):
            return dwave(place)
        if what == "counts" and kind is None and not holds_counts(place):
            return dwave(place)
        return _dataset(place, _read(place, what, kind, options))


def _read(path: Path, what: str, kind: str | None, options: Mapping[str, Any]) -> dict[str, Any]:
    """Read what a file of some kind holds, by what it is in a data set."""
    if what == ".npy":
        return {"train": read_npy(path)}
    if what == ".npz":
        return read_npz(path, options["label_column"])
    if what == "counts":
        return read_counts(path, options["endian"], options["bits"], options["states"])
    if what in ARROW:
        return _read_arrow(path, options)
    if what == "fasta":
        return _read_fasta(path, options["alphabet"], options["theta"], options["inserts"])
    if what == "text":
        window, stride = options["window"], options["stride"]
        if window is None:
            raise ValueError(
                f"{path}: a text is cut into windows, and window= says of how many characters; other files end in "
                f"{listed()}"
            )
        return {"train": read_windows(path, window, stride, join_spaces=options["join_spaces"])}
    if what == "columns":
        return _read_columns(path, options)
    return _read_table(path, kind, options["label_column"], options["count_column"], options["missing"])


def _recognised(path: Path, window: int | None) -> str:
    """Say what a file is, by its ending; a text that begins like an alignment is one, whatever it is called."""
    ending = ending_of(path)
    if ending in (*ARRAYS, *ARROW):
        return ending
    if ending == JSON:
        return "counts"
    if ending in (*FASTA, *STOCKHOLM) or (window is None and begins_like_fasta(path)):
        return "fasta"
    return "table" if ending in TABLES else "text"


def _refuse_others(path: Path, what: str, options: Mapping[str, Any]) -> None:
    """Refuse options that mean nothing for a file: whoever gave them expects something else of it."""
    for name, value in options.items():
        if value != DEFAULTS.get(name) and what not in OF_KIND[name]:
            if name == "label_column":
                raise ValueError(f"{path} holds rows alone; a label column needs a .npz or a .csv file")
            shown = what if what in ARRAYS else f"a {what}"
            raise ValueError(f"{path} is read as {shown}, which has no {name}; it is for {' or '.join(OF_KIND[name])}")


def _read_table(
    path: Path, kind: str | None, label_column: str | int | None, count_column: str | int | None, missing: str
) -> dict[str, Any]:
    word = word_of(missing)
    try:
        table = read_table(
            path,
            label_column=label_column,
            count_column=0 if kind == "histogram" else count_column,
            guess=kind is None,
            split=kind != "table",
            missing=Missing() if missing == "drop" else None,
        )
    except ValueError:
        found = None if missing in ("error", "drop") else _read_with_gaps(path, kind, label_column, count_column, word)
        if found is None:
            raise
        return found
    if word is not None:
        found = _read_with_gaps(path, kind, label_column, count_column, word)
        if found is None:
            raise ValueError(f"{path} has no cell that holds {word!r}, which was to stand for a missing value")
        return found
    if table.info.get("histogram"):
        warnings.warn(
            f"{path} is read as a histogram: its first column counts the rows (kind='histogram' says so, kind='table' not)",
            stacklevel=4,
        )
    if table.info.get("bitstrings") == "recognised":
        warnings.warn(
            f"{path} is read as strings of digits, {table.rows.shape[1]} sites each: some begin with a zero (a header "
            "'bitstring' says so, kind='table' reads numbers)",
            stacklevel=4,
        )
    parts = {"train": table.rows, "labels": table.labels, "weights": table.weights, "info": table.info or None}
    return {name: part for name, part in parts.items() if part is not None}


def _read_with_gaps(
    path: Path, kind: str | None, label_column: str | int | None, count_column: str | int | None, word: str | None
) -> dict[str, Any] | None:
    """Read a table in which values are missing; None where it is none, or none is."""
    if kind == "histogram":
        return None
    if has_names(path):
        table = read_words(path, label_column=label_column, count_column=count_column, word=word)
        parts = {"train": table.rows, "labels": table.labels, "weights": table.weights}
        lacks = any(value is None for value in np.asarray(table.rows).ravel().tolist())
        return {name: part for name, part in parts.items() if part is not None} if lacks else None
    rows = None if label_column is not None or count_column is not None else read_gaps(path, word)
    return None if rows is None else {"train": rows}


def _read_columns(path: Path, options: Mapping[str, Any]) -> dict[str, Any]:
    word = word_of(options["missing"])
    drop = options["drop_column"] or ()
    table = read_words(
        path,
        label_column=options["label_column"],
        count_column=options["count_column"],
        drop=drop.split(",") if isinstance(drop, str) else drop,
        missing=Missing() if options["missing"] == "drop" else None,
        word=word,
    )
    cells, names = np.asarray(table.rows).ravel().tolist(), getattr(table.rows, "names", ())
    if options["missing"] == "error" and any(value is None for value in cells):
        row, column = divmod(next(place for place, value in enumerate(cells) if value is None), table.rows.shape[1])
        raise ValueError(f"{path} has no value in row {row} of the column {names[column]!r}, and missing='error'")
    parts = {"train": table.rows, "labels": table.labels, "weights": table.weights, "info": table.info or None}
    return {name: part for name, part in parts.items() if part is not None}


def _read_arrow(path: Path, options: Mapping[str, Any]) -> dict[str, Any]:
    own = {name: options[name] for name in ("label_column", "count_column", "drop_column")}
    stored = open_rows(path, **own)
    devices.require_memory(stored.num_bytes, torch.device("cpu"), f"learn from neurise.open_rows('{path}') instead")
    held = stored.everything()
    parts = {"train": as_table(held.X), "labels": held.y, "weights": held.weights}
    return {name: part for name, part in parts.items() if part is not None}


def _read_fasta(path: Path, alphabet: str, theta: float | None, inserts: str) -> dict[str, Any]:
    rows, names, symbols = read_fasta(path, alphabet, inserts=inserts)
    found = {"train": rows, "alphabet": symbols, "info": {"sequences": names, "theta": theta}}
    return found if theta is None else found | {"weights": sequence_weights(rows, theta)}


def _dataset(path: Path, found: Mapping[str, Any]) -> Dataset:
    if isinstance(found["train"], NamedRows):
        rows = found["train"]
        symbols = np.array(sorted({str(value) for value in np.asarray(rows).ravel().tolist()}), dtype=object)
        return Dataset(path.name, Space(rows.shape[1], min(MAX_STATES, len(symbols))), symbols, **found)
    parts = {split: found[split] for split in ("train", "validation", "test") if split in found}
    for split, rows in parts.items():
        _check(path, split, rows, parts["train"], found)
    present = dict(parts)  # the alphabet is that of the values that are there
    for split, rows in parts.items():
        if rows.dtype.kind in "fO":
            present[split] = gaps.filled(rows, f"{path}, {split},")[0]
    alphabet = _alphabet(path, present, found.get("alphabet"))
    space = Space(parts["train"].shape[1], len(alphabet))
    law = draw = None
    if "pmf" in found:
        try:
            pmf = as_law(found["pmf"], space.size, "pmf").numpy()
        except ValueError as error:
            raise ValueError(
                f"{path}: {error} ({space.sites} sites of the {space.states} symbols {alphabet.symbols.tolist()[:10]}; "
                "if the rows lack a symbol, add an array 'alphabet')"
            ) from error
        law, draw = (lambda: pmf), partial(_draw, space, alphabet.symbols, pmf)
    others = ("pmf", "alphabet", "edges", "couplings", "fields", "offset", "shape")
    described: dict[str, Any] = {key: values for key, values in found.items() if key not in others}
    described |= restore(str(path), space, alphabet, found)
    return Dataset(path.name, space, alphabet.symbols, **described, law=law, draw=draw)


def _check(path: Path, split: str, rows: np.ndarray, train: np.ndarray, found: Mapping[str, Any]) -> None:
    try:
        as_matrix(rows, "X" if split == "train" else split)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error
    if rows.shape[1] != train.shape[1]:
        raise ValueError(
            f"{path}: {split} has {rows.shape[1]} columns and the rows to learn from have {train.shape[1]}"
        )
    if (rows.dtype.kind in "US") != (train.dtype.kind in "US"):
        raise ValueError(f"{path}: {split} is of type {rows.dtype} and the rows to learn from of type {train.dtype}")
    prefix = "" if split == "train" else f"{split}_"
    for what in ("labels", "weights"):
        values = found.get(prefix + what)
        if values is not None and values.shape != (len(rows),):
            raise ValueError(
                f"{path}: {prefix}{what} has the shape {values.shape}; one for each of {len(rows)} rows is needed"
            )


def _alphabet(path: Path, parts: Mapping[str, np.ndarray], names: np.ndarray | None) -> Alphabet:
    """Collect the symbols of all rows, a block at a time: codes take eight bytes each, and the rows perhaps one."""
    try:
        found = [Alphabet.of(block).symbols for rows in parts.values() for block in _blocks(rows)]
        symbols = np.unique(np.concatenate(found))[:, None]
        alphabet = Alphabet.of(symbols, None if names is None else names.tolist())
        alphabet.tokens(symbols, "the data")
        return alphabet
    except ValueError as error:
        for rows in parts.values():  # a block does not know where it stands, so that the error is sought in the whole
            try:
                Alphabet.of(rows)
            except ValueError as placed:
                raise ValueError(f"{path}: {placed}") from error
        raise ValueError(f"{path}: {error}") from error


def _blocks(rows: np.ndarray) -> Iterator[np.ndarray]:
    step = max(1, BLOCK // rows.shape[1])
    return (rows[start : start + step] for start in range(0, len(rows), step))


def _draw(space: Space, symbols: np.ndarray, pmf: np.ndarray, n: int, rng: np.random.Generator) -> np.ndarray:
    index = draw_from_law(pmf, n, rng)
    digits = [index // space.states ** (space.sites - 1 - site) % space.states for site in range(space.sites)]
    return np.asarray(symbols[np.stack(digits, axis=1)])
