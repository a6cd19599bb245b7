"""Missing values in tables of symbols: NaN, None, NA of a data frame, and masked entries of a numpy array."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from neurise.alphabet import Symbols, as_array

NO_VALUE = ("NAType", "NaTType")
"""Names of the types of pandas' own missing values, which are known without importing it."""


def filled(
    X: Symbols, what: str = "X", *, rows: np.ndarray | None = None, known: Sequence[Any] | None = None
) -> tuple[Symbols, np.ndarray | None]:
    """Put a symbol of the same column in the place of every missing value; return the data, and where values are missing.

    The mask is (N, sites) booleans, or None where nothing is missing. A gap is filled with the first value that stands in
    its column, among the ``rows`` (N,) that count. A column without any is an error, or gets its entry of ``known``.
    What the filled cells hold means nothing: everything that looks at them looks at the mask too.
    """
    data = np.ma.getdata(X) if isinstance(X, np.ma.MaskedArray) else as_array(X, what)
    missing = _missing(data)
    if isinstance(X, np.ma.MaskedArray):
        missing = missing | np.ma.getmaskarray(X)
    if rows is not None and len(rows) != len(data):
        rows = None  # weights of other rows are refused where weights are checked
    if data.ndim != 2 or not missing.any():  # what is no matrix is refused where matrices are asked for
        return (data if isinstance(X, np.ma.MaskedArray) else X), None
    data = data.copy()
    for column in np.flatnonzero(missing.any(0)).tolist():
        there = ~missing[:, column] if rows is None else ~missing[:, column] & rows
        if there.any():
            data[missing[:, column], column] = data[there.argmax(), column]
        elif known is not None:
            data = _put(data, missing[:, column], column, known[column])
        else:
            raise ValueError(
                f"{what} has no value at all in column {column}: every entry is missing; leave the column out"
            )
    return (torch.from_numpy(data) if isinstance(X, torch.Tensor) else data), missing


def _put(data: np.ndarray, rows: np.ndarray, column: int, symbol: Any) -> np.ndarray:
    """Write a symbol of the model into a column, in a type that holds it as well as what is there."""
    value = np.asarray(symbol)
    if data.dtype != value.dtype and not (data.dtype.kind == "f" and value.dtype.kind in "biuf"):
        data = data.astype(object)
    data[rows, column] = value.item()
    return data


def _missing(data: np.ndarray) -> np.ndarray:
    """Tell which entries are no values, of the shape of the data."""
    if data.dtype.kind == "f":
        return np.asarray(np.isnan(data))
    if data.dtype.kind != "O":
        return np.zeros(data.shape, dtype=bool)
    return np.fromiter(map(is_gap, data.ravel().tolist()), bool, data.size).reshape(data.shape)


def is_gap(entry: Any) -> bool:
    """Whether an entry of a table stands for a value that is not there."""
    if entry is None or type(entry).__name__ in NO_VALUE or entry is np.ma.masked:
        return True
    return isinstance(entry, float | np.floating) and bool(entry != entry)
