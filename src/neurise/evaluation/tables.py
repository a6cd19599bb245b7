"""Tables whose columns have alphabets of their own, measured as rows of tokens."""

from __future__ import annotations

import copy
import warnings
from dataclasses import replace
from typing import Any

import numpy as np

from neurise import gaps
from neurise.alphabet import Alphabet
from neurise.columns import Columns
from neurise.dataset import Dataset
from neurise.frames import Table, as_table, frame_kind
from neurise.holdings.holding import Holding
from neurise.space import Space


def table_set(rows: Any) -> Dataset:
    """Make a data set of a table; its symbols are found where it is measured."""
    table = as_table(rows)
    return Dataset("the given rows", Space(len(table.names), 2), np.arange(2), test=table)


def columns_of(model: Any, data: Dataset) -> Columns | None:
    """Return the columns that a model of a table knows, or that samples and data have together; None where there are none."""
    known = getattr(getattr(model, "schema_", None), "alphabet", None)
    if isinstance(known, Columns):
        return known
    parts = [part for part in (data.train, data.test) if isinstance(part, Table)]
    if not parts or hasattr(model, "sample"):
        return None
    parts.append(as_table(model) if frame_kind(model) else Table(np.asarray(model), parts[0].names))
    names = parts[0].names
    for part in parts:
        if sorted(part.names) != sorted(names):
            raise ValueError(
                f"samples have the columns {', '.join(parts[-1].names)}, and {data.name} {', '.join(names)}"
            )
    rows = [np.asarray(part)[:, [part.names.index(name) for name in names]] for part in parts]
    return Columns.of(Table(np.concatenate(rows), names))


def complete(held: Holding, what: str) -> Holding:
    """Leave out the rows that lack values, with a warning."""
    rows, gone = gaps.filled(held.X, what)
    if gone is None:
        return held
    whole = np.asarray(~gone.any(1))
    _warn_of_gaps(whole, f"rows of {what}")
    y, weights = (None if part is None else np.asarray(part)[whole] for part in (held.y, held.weights))
    return replace(held, X=rows[whole], y=y, weights=weights)


def _warn_of_gaps(whole: np.ndarray, which: str) -> None:
    """Say how many rows are not whole, (N,) booleans; refuse to go on where none is."""
    if whole.all():
        return
    if not whole.any():
        raise ValueError(
            f"all {len(whole):,} {which} lack values, and a comparison needs complete ones: impute them first"
        )
    warnings.warn(
        f"{int((~whole).sum()):,} of {len(whole):,} {which} lack values: they are left out of the comparison",
        stacklevel=4,
    )


def on_tokens(model: Any, data: Dataset, columns: Columns) -> tuple[Any, Dataset]:
    """Translate a model, or samples, and a data set to tokens; rows that lack values are left out, with a warning."""
    changed: dict[str, Any] = {}
    for part, prefix in (("train", ""), ("test", "test_")):
        rows = getattr(data, part)
        if rows is None:
            continue
        if not isinstance(rows, Table):
            names = ", ".join(map(repr, columns.names))
            raise ValueError(f"{data.name} has no names of columns, and the model has: {names}")
        found = columns.read(rows, data.name)
        whole = np.asarray(~found.missing.any(1))
        _warn_of_gaps(whole, f"{part} rows of {data.name}")
        changed[part] = found.tokens[whole].astype(np.int64)
        for what in ("labels", "weights"):
            own = getattr(data, prefix + what)
            changed[prefix + what] = None if own is None else own[whole]
    space, symbols = Space(len(columns.columns), len(columns)), np.arange(len(columns))
    known = replace(data, space=space, symbols=symbols, validation=None, **changed)
    if hasattr(model, "sample"):
        # The same model, which is told that its symbols are its tokens.
        view = copy.copy(model)
        view.schema_ = replace(model.schema_, alphabet=Alphabet(tuple(range(len(columns))), "<i8"))
        return view, known
    return columns.read(model, "samples").tokens.astype(np.int64), known
