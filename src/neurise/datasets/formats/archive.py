"""Data sets as ``.npz`` archives: what their arrays are called, and reading and writing them. Nothing is unpickled."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from neurise import json_text
from neurise.dataset import Dataset
from neurise.datasets.formats.arrays import open_npz
from neurise.datasets.formats.truth import truth_of

ROWS = ("train", "validation", "test")

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
    "edges": ("edges",),
    "couplings": ("couplings",),
    "fields": ("fields",),
    "offset": ("offset",),
    "shape": ("shape",),
    "info": ("info",),
}
"""What the arrays of an ``.npz`` file may be called; a single array of any other name holds the rows."""

OF_INFO = "info."
"""How the arrays that belong to ``info`` begin: numbers by the thousand do not belong into JSON."""

SMALL = 2**22
"""Probabilities up to which a law is written out in full: 32 MB."""


def read_npz(path: Path, label_column: str | int | None) -> dict[str, Any]:
    """Read the arrays of an archive, by what they are; ``info`` as a dictionary."""
    with open_npz(path) as archive:
        extra = [key for key in archive.names if key.startswith(OF_INFO)]
        names = _fields(path, [key for key in archive.names if key not in extra], label_column)
        found: dict[str, Any] = {field: archive.array(key) for key, field in names.items()}
        counts = found.get("weights") if "counts" in names else None
        more = {key.removeprefix(OF_INFO): archive.array(key) for key in extra}
    if counts is not None:
        _check_counts(path, counts)
    if "info" in found or more:
        found["info"] = _info(path, found.get("info")) | more
    return found


def write_npz(path: Path, dataset: Dataset, rows: np.ndarray) -> None:
    """Write everything that is known of a data set, its law where that is small."""
    arrays: dict[str, np.ndarray] = {"X": rows, "alphabet": dataset.symbols}
    for split in ROWS:
        prefix = "" if split == "train" else f"{split}_"
        for name in (split, f"{prefix}labels", f"{prefix}weights"):
            values = getattr(dataset, name)
            if values is not None and name != "train":
                arrays[name] = np.asarray(values)
    if dataset.law is not None and dataset.space.size <= SMALL and dataset.pmf is not None:
        arrays["pmf"] = dataset.pmf
    arrays |= truth_of(dataset)
    info = {"name": dataset.name, **dataset.info}
    for key, value in info.items():
        if isinstance(value, np.ndarray) and value.dtype.kind != "O":
            arrays[OF_INFO + key] = value
    plain = {key: value for key, value in info.items() if OF_INFO + key not in arrays}
    arrays["info"] = np.array(json.dumps(plain, default=_plain))
    with path.open("wb") as file:
        np.savez_compressed(file, **arrays)  # type: ignore[arg-type]


def _fields(path: Path, keys: list[str], label_column: str | int | None) -> dict[str, str]:
    """Say what each array of an archive is, by its name."""
    known = {key: field for field, names in KEYS.items() for key in names}
    if label_column is not None:
        if label_column not in keys:
            raise ValueError(f"{path} has no array {label_column!r} for the labels; it has {keys}")
        known = {key: field for key, field in known.items() if field != "labels"} | {str(label_column): "labels"}
    fields = {key: known[key] for key in keys if key in known}
    others = [key for key in keys if key not in known]
    if "train" not in fields.values() and len(others) == 1:
        fields[others.pop()] = "train"
    if others:
        raise ValueError(f"{path} has arrays {others} that are not known; there are: {', '.join(known)}")
    if "train" not in fields.values():
        raise ValueError(f"{path} has no rows: an array called {' or '.join(KEYS['train'])} is needed")
    doubled = [key for key, field in fields.items() if list(fields.values()).count(field) > 1]
    if doubled:
        raise ValueError(f"{path} has the same thing under several names: {', '.join(doubled)}")
    return fields


def _check_counts(path: Path, counts: np.ndarray) -> None:
    with np.errstate(invalid="ignore"):
        wrong = np.ones(1, bool) if counts.dtype.kind not in "iuf" else ~((counts >= 0) & (counts == np.floor(counts)))
    if wrong.any():
        row = int(wrong.argmax())
        found = repr(counts.ravel()[row].item()) + f" at row {row}" if counts.size else f"the type {counts.dtype}"
        raise ValueError(f"{path}: counts has {found}; a count is a whole number, not negative")


def _info(path: Path, array: np.ndarray | None) -> dict[str, Any]:
    if array is None:
        return {}
    given = array.shape == () and array.dtype.kind == "U"
    info = json_text.parse(array.item(), f"{path}: info") if given else None
    if not isinstance(info, dict):
        raise ValueError(f"{path}: info is not a JSON object; {str(array.ravel()[:1].tolist())[:60]}")
    return info


def _plain(value: Any) -> Any:
    """Give numpy's types and ours in JSON's."""
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, set | frozenset | range):
        return list(value)
    return str(value)
