"""Data in files: ``.npy``, ``.npz`` and ``.csv``. Nothing is ever unpickled."""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from neurise.alphabet import Alphabet, as_matrix
from neurise.dataset import Dataset
from neurise.datasets._csv import read_csv, write_csv
from neurise.datasets._enumeration import draw_from_law
from neurise.laws import as_law
from neurise.persistence import write_atomically
from neurise.space import Space

ENDINGS = (".npy", ".npz", ".csv")

KEYS = {
    "train": ("X", "train", "samples"),
    "labels": ("y", "labels"),
    "weights": ("weights", "counts"),
    "validation": ("validation",),
    "validation_labels": ("validation_labels",),
    "validation_weights": ("validation_weights",),
    "test": ("test",),
    "test_labels": ("test_labels",),
    "test_weights": ("test_weights",),
    "pmf": ("pmf",),
    "alphabet": ("alphabet",),
}
"""What the arrays of an ``.npz`` file may be called; a single array of any other name holds the rows."""

BLOCK = 2**22
"""Cells that are looked at together: their symbols' codes take eight bytes each."""


def files(path: str | Path, *, label_column: str | int | None = None) -> Dataset:
    """Read a data set from a file; its ending says how.

    - ``.npy``: rows, (N, sites).
    - ``.npz``: rows as ``X``, ``train`` or ``samples`` (or the only array); besides them ``y`` or ``labels``,
      ``weights`` or ``counts``; ``test`` and ``validation``, each with its ``…_labels`` and ``…_weights``; ``pmf``, all
      p^q probabilities, first site most significant; ``alphabet``, all symbols in the order of the pmf's digits
      (sorted where none is given).
    - ``.csv``: whole numbers or single letters, with or without a header.

    ``label_column`` says where the labels are: an array of a ``.npz`` file, or a column of a ``.csv`` file, by its name
    or its number from 0.
    """
    place = Path(path)
    ending = _ending(place)
    if place.is_dir():
        raise ValueError(f"{place} is a folder; a file that ends in {' or '.join(ENDINGS)} is needed")
    if not place.exists():
        raise FileNotFoundError(f"there is no file {place}")
    if ending == ".csv":
        rows, labels = read_csv(place, label_column)
        found = {"train": rows} if labels is None else {"train": rows, "labels": labels}
    elif ending == ".npz":
        found = _read_npz(place, label_column)
    else:
        if label_column is not None:
            raise ValueError(f"{place} holds rows alone; a label column needs a .npz or a .csv file")
        found = {"train": _read_npy(place)}
    return _dataset(place, found)


def write_rows(path: str | Path, rows: Any) -> None:
    """Write rows, (N, sites), as ``.npy``, ``.npz`` (named ``X``) or ``.csv``: whole, or not at all."""
    place, matrix = Path(path), as_matrix(rows, "rows")
    writers: dict[str, Callable[[Path], None]] = {
        ".npy": partial(_write_npy, rows=matrix),
        ".npz": partial(_write_npz, rows=matrix),
        ".csv": partial(_write_csv, rows=matrix),
    }
    write = writers[_ending(place)]
    try:
        write_atomically(place, write)
    except OSError as error:
        raise OSError(f"cannot write {place}: {error.strerror or error}") from error


def check_ending(path: str | Path) -> None:
    """Refuse a file name whose ending is not known, before any work is done for it."""
    _ending(Path(path))


def _ending(path: Path) -> str:
    ending = path.suffix.lower()
    if ending not in ENDINGS:
        raise ValueError(f"{path}: the ending {path.suffix!r} is not known; there are: {', '.join(ENDINGS)}")
    return ending


def _read_npy(path: Path) -> np.ndarray:
    array = _loaded(path)
    if not isinstance(array, np.ndarray):
        raise ValueError(f"{path} is a .npz archive; give it that ending")
    return array


def _read_npz(path: Path, label_column: str | int | None) -> dict[str, np.ndarray]:
    known = {key: field for field, keys in KEYS.items() for key in keys}
    archive = _loaded(path)
    if isinstance(archive, np.ndarray):
        raise ValueError(f"{path} is a single .npy array; give it that ending")
    with archive:
        if label_column is not None:
            if label_column not in archive.files:
                raise ValueError(f"{path} has no array {label_column!r} for the labels; it has {archive.files}")
            known = {key: field for key, field in known.items() if field != "labels"} | {str(label_column): "labels"}
        fields = {key: known[key] for key in archive.files if key in known}
        others = [key for key in archive.files if key not in known]
        if "train" not in fields.values() and len(others) == 1:
            fields[others.pop()] = "train"
        if others:
            raise ValueError(f"{path} has arrays {others} that are not known; there are: {', '.join(known)}")
        if "train" not in fields.values():
            raise ValueError(f"{path} has no rows: an array called {' or '.join(KEYS['train'])} is needed")
        doubled = [key for key, field in fields.items() if list(fields.values()).count(field) > 1]
        if doubled:
            raise ValueError(f"{path} has the same thing under several names: {', '.join(doubled)}")
        return {field: _guarded(path, partial(archive.__getitem__, key)) for key, field in fields.items()}


def _loaded(path: Path) -> Any:
    return _guarded(path, lambda: np.load(path, allow_pickle=False))


def _guarded(path: Path, read: Callable[[], Any]) -> Any:
    """Read, and say which file it was if its bytes are not what they should be."""
    try:
        return read()
    except (ValueError, EOFError, KeyError, NotImplementedError, zipfile.BadZipFile, zlib.error) as error:
        if "allow_pickle" in str(error) and "Object arrays" in str(error):
            raise ValueError(f"{path} holds Python objects, which are never read; save an array of numbers") from error
        raise ValueError(f"{path} is damaged, cut short or no {path.suffix} file ({error})") from error


def _dataset(path: Path, found: Mapping[str, np.ndarray]) -> Dataset:
    parts = {split: found[split] for split in ("train", "validation", "test") if split in found}
    for split, rows in parts.items():
        _check(path, split, rows, parts["train"], found)
    alphabet = _alphabet(path, parts, found.get("alphabet"))
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
    described: dict[str, Any] = {key: values for key, values in found.items() if key not in ("pmf", "alphabet")}
    return Dataset(path.name, space, alphabet.symbols, **described, law=law, draw=draw)


def _check(path: Path, split: str, rows: np.ndarray, train: np.ndarray, found: Mapping[str, np.ndarray]) -> None:
    try:
        as_matrix(rows, split)
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


def _write_npy(path: Path, rows: np.ndarray) -> None:
    with path.open("wb") as file:
        np.save(file, rows, allow_pickle=False)


def _write_npz(path: Path, rows: np.ndarray) -> None:
    with path.open("wb") as file:
        np.savez(file, X=rows)


def _write_csv(path: Path, rows: np.ndarray) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        write_csv(file, rows)
