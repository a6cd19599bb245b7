"""Data frames of pandas, polars and pyarrow, and tables with names: put values into their gaps."""

from __future__ import annotations

from typing import Any

import numpy as np

from neurise.column import Given
from neurise.extras import need
from neurise.frames import KINDS, Table, as_table, frame_kind, read_frame


def with_filled(data: Any, values: np.ndarray) -> Any:
    """Put values (N, columns) into the gaps of a data frame; all else stays as it is, types too where they can hold them.

    Columns are matched by name where the values are a :class:`Table`, and by place otherwise.
    """
    given = read_frame(data)
    names = [str(name) for name in getattr(values, "names", ())] or [str(own.name) for own in given]
    by_name = dict(zip(names, np.asarray(values, dtype=object).T, strict=True))
    kind = frame_kind(data)
    if kind not in KINDS:
        rows = np.array(as_table(data), dtype=object)
        for place, own in enumerate(given):
            rows[own.missing, place] = by_name[str(own.name)][own.missing]
        return Table(rows, [str(own.name) for own in given])
    put = {"pandas": _put_pandas, "polars": _put_polars, "pyarrow": _put_pyarrow}[kind]
    for place, own in enumerate(given):
        if own.missing.any():
            data = put(data, place, own, by_name[str(own.name)])
    return data


def _put_pandas(data: Any, place: int, own: Given, values: np.ndarray) -> Any:
    series, drawn = data.iloc[:, place].copy(), values[own.missing].tolist()
    try:
        series[own.missing] = drawn
    except (TypeError, ValueError):  # a type that does not hold the model's symbols, categories that lack one say
        series = series.astype(object)
        series[own.missing] = drawn
    data = data.copy()
    data.isetitem(place, series)
    return data


def _put_polars(data: Any, place: int, own: Given, values: np.ndarray) -> Any:
    polars, series = need("polars"), data.to_series(place)
    try:
        series = polars.Series(series.name, _mixed(own, values), dtype=series.dtype)
    except (TypeError, ValueError, polars.exceptions.PolarsError):  # whole numbers beside floats, say
        series = polars.Series(series.name, _mixed(own, values), strict=False)
    return data.clone().replace_column(place, series)


def _put_pyarrow(data: Any, place: int, own: Given, values: np.ndarray) -> Any:
    pyarrow, kind, mixed = need("pyarrow", "parquet"), data.field(place).type, _mixed(own, values)
    try:
        if own.categories is not None:
            words = list(dict.fromkeys([*own.categories, *mixed]))
            number = {word: token for token, word in enumerate(words)}
            codes = pyarrow.array([number[value] for value in mixed], kind.index_type)
            column = pyarrow.DictionaryArray.from_arrays(
                codes, pyarrow.array(words, kind.value_type), ordered=kind.ordered
            )
        else:
            column = pyarrow.array(mixed, kind)
    except (ValueError, pyarrow.ArrowException):
        column = pyarrow.array(mixed)
    return data.set_column(place, data.field(place).name, column)


def _mixed(own: Given, values: np.ndarray) -> list[Any]:
    """Return the values of a column, and in its gaps those of another."""
    return [other if gone else value for value, other, gone in zip(own.values, values, own.missing, strict=True)]
