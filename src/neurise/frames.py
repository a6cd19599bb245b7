"""Data frames of pandas, polars and pyarrow, and tables with names: read as columns, and made of columns again."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from neurise.column import Column, Given
from neurise.extras import need

KINDS = ("pandas", "polars", "pyarrow")
CONTAINERS = {"DataFrame", "LazyFrame", "Table", "RecordBatch"}


class Table(np.ndarray):
    """Rows (N, columns) of objects, with the ``names`` of the columns: what a file with a header is read as."""

    names: tuple[str, ...]

    def __new__(cls, rows: Any, names: Sequence[str]) -> Table:
        """Give rows names."""
        table = np.asarray(rows, dtype=object).view(cls)
        table.names = tuple(names)
        if table.ndim != 2 or table.shape[1] != len(table.names):
            raise ValueError(f"{len(table.names)} names for rows of the shape {table.shape}")
        return table

    def __array_finalize__(self, other: Any) -> None:
        """Keep the names of what a part is taken from."""
        self.names = getattr(other, "names", ())


def frame_kind(data: Any) -> str | None:
    """Say which library a data frame is of; "table" for a :class:`Table`, and None for anything else."""
    if isinstance(data, np.ndarray):
        return "table" if isinstance(data, Table) and data.ndim == 2 and len(data.names) == data.shape[1] else None
    kind = type(data)
    library = kind.__module__.partition(".")[0]
    if library in KINDS and kind.__name__ in CONTAINERS:
        return library
    if hasattr(data, "__dataframe__") or hasattr(data, "__narwhals_dataframe__"):
        return "narwhals"
    return None


def read_frame(data: Any, what: str = "X") -> list[Given]:
    """Read the columns of a data frame."""
    if isinstance(data, Table):
        return [given_of(name, column) for name, column in zip(data.names, np.asarray(data).T, strict=True)]
    narwhals = need("narwhals", "frames")
    if type(data).__name__ == "LazyFrame":
        raise ValueError(f"{what} is a lazy frame, whose rows are not there yet; call collect() first")
    try:
        frame = narwhals.from_native(data, eager_only=True)
    except (TypeError, ValueError) as error:  # two columns of one name, say
        told = " ".join(str(error).split())
        raise ValueError(f"{what} is no data frame that can be read: {told}") from error
    names = list(frame.columns)
    if len(set(map(str, names))) < len(names):
        twice = next(name for name in names if list(map(str, names)).count(str(name)) > 1)
        raise ValueError(f"{what} has two columns of the name {twice!r}")
    if not names or not len(frame):
        lacking = "0 sample(s)" if names else "0 feature(s)"
        raise ValueError(f"{what} is empty: {lacking} (shape={frame.shape}) while a minimum of 1 is required.")
    return [_given(narwhals, series, name) for name, series in zip(names, frame.iter_columns(), strict=True)]


def _given(narwhals: Any, series: Any, name: Any) -> Given:
    missing = series.is_null().to_numpy()
    if series.dtype.is_float():
        missing = missing | series.is_nan().fill_null(True).to_numpy()
    native = series.to_native()
    kind = str(native.type if hasattr(native, "type") else native.dtype)
    categories = _categories(native, kind) if series.dtype in (narwhals.Categorical, narwhals.Enum) else None
    ordered = bool(getattr(getattr(native, "cat", None), "ordered", "ordered=1" in kind))
    own = name if isinstance(name, str | int) else str(name)
    return Given(own, series.to_list(), np.asarray(missing, dtype=bool), kind, categories, ordered)


def _categories(native: Any, kind: str) -> tuple[Any, ...] | None:
    """Return all categories of a categorical column, also those that do not occur; None where the type has no list."""
    if kind.startswith("dictionary<"):
        chunks = native.unify_dictionaries().chunks if hasattr(native, "chunks") else [native]
        return tuple(chunks[0].dictionary.to_pylist()) if chunks else None
    if kind.startswith("Enum"):
        return tuple(native.dtype.categories.to_list())
    if kind.startswith("Categorical"):  # of polars, which may know words of other columns
        return None
    return tuple(native.cat.categories.tolist())


def given_of(name: str, values: np.ndarray) -> Given:
    """Read a column of an array; objects that are None or not equal to themselves are missing."""
    entries = values.tolist()
    if values.dtype.kind in "OfM":
        missing = np.fromiter((value is None or _differs(value) for value in entries), bool, len(entries))
    else:
        missing = np.zeros(len(entries), dtype=bool)
    kind = str(values.dtype)
    if values.dtype.kind == "O" and all(type(value) is int for value in entries if value is not None):
        kind = "int"
    return Given(name, entries, missing, kind)


def _differs(value: Any) -> bool:
    """Whether a value is not equal to itself, as NaN is, or cannot say, as pandas' NA."""
    try:
        return bool(value != value)
    except (TypeError, ValueError):
        return True


def as_table(data: Any) -> Table:
    """Write a data frame as a table with names."""
    if isinstance(data, Table):
        return data
    given = read_frame(data)
    rows = np.empty((len(given[0].values), len(given)), dtype=object)
    for place, column in enumerate(given):
        rows[:, place] = [None if gone else value for value, gone in zip(column.values, column.missing, strict=True)]
    return Table(rows, [str(column.name) for column in given])


def make_frame(kind: str, columns: Sequence[Column], tokens: np.ndarray, rng: np.random.Generator | None) -> Any:
    """Make a data frame of the library that was read, with the types and categories that its columns had."""
    made = {"pandas": _pandas, "polars": _polars, "pyarrow": _pyarrow}.get(kind)
    if made is not None:
        return made(columns, tokens, rng)
    rows = np.empty(tokens.shape, dtype=object)
    for place, column in enumerate(columns):
        rows[:, place] = column.values(tokens[:, place], rng)
    return Table(rows, [str(column.name) for column in columns])


def _pandas(columns: Sequence[Column], tokens: np.ndarray, rng: np.random.Generator | None) -> Any:
    pandas = need("pandas")
    parts = []
    for place, column in enumerate(columns):
        if column.categorical:
            codes = tokens[:, place].astype(np.int16)
            values = pandas.Categorical.from_codes(codes, list(column.symbols), ordered=column.ordered)
            parts.append(pandas.Series(values, name=column.name))
            continue
        values = column.values(tokens[:, place], rng)
        try:
            parts.append(pandas.Series(values, name=column.name, dtype=column.kind))
        except (TypeError, ValueError):  # the type cannot hold them, or this version does not know it
            parts.append(pandas.Series(list(values), name=column.name))
    return pandas.concat(parts, axis=1)


def _polars(columns: Sequence[Column], tokens: np.ndarray, rng: np.random.Generator | None) -> Any:
    polars, parts = need("polars"), []
    for place, column in enumerate(columns):
        base = column.kind.partition("(")[0]
        values = column.values(tokens[:, place], rng).tolist()
        dtype = polars.Enum(list(column.symbols)) if base == "Enum" else getattr(polars, base, None)
        parts.append(polars.Series(str(column.name), values, dtype=dtype))
    return polars.DataFrame(parts)


def _pyarrow(columns: Sequence[Column], tokens: np.ndarray, rng: np.random.Generator | None) -> Any:
    pyarrow, parts = need("pyarrow", "parquet"), []
    for place, column in enumerate(columns):
        if column.kind.startswith("dictionary<"):
            index = re.search(r"indices=(u?int\d+)", column.kind)
            codes = pyarrow.array(tokens[:, place], pyarrow.type_for_alias(index[1] if index else "int32"))
            words = pyarrow.array(list(column.symbols))
            parts.append(pyarrow.DictionaryArray.from_arrays(codes, words, ordered=column.ordered))
            continue
        values = column.values(tokens[:, place], rng).tolist()
        try:
            parts.append(pyarrow.array(values, pyarrow.type_for_alias(column.kind)))
        except (ValueError, pyarrow.ArrowException):
            parts.append(pyarrow.array(values))
    return pyarrow.table(parts, names=[str(column.name) for column in columns])
