"""Measure models of tables on their tokens: columns with alphabets of their own become numbers 0 … p_i − 1."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import Any

import numpy as np

from neurise.alphabet import Alphabet
from neurise.columns import Columns
from neurise.dataset import Dataset
from neurise.frames import Table
from neurise.modeling.model import Model
from neurise.space import Space


def in_tokens(model: Any, *given: Any) -> tuple[Any, ...]:
    """Return a model and data sets, or rows, as they are; those of a model of a table as tokens.

    The model is the same one, which is told that its symbols are its tokens: samples, likelihoods and what it remembers of the
    rows that it learnt from are those of the table. Numbers of binned columns are compared by their bins.
    """
    columns = model.schema_.alphabet if isinstance(model, Model) and hasattr(model, "schema_") else None
    if not isinstance(columns, Columns):
        return (model, *given)
    view = copy.copy(model)
    numbers = Alphabet(tuple(range(len(columns))), "<i8")
    view.schema_ = replace(model.schema_, alphabet=numbers)
    return (view, *(_translated(columns, part) for part in given))


def _translated(columns: Columns, data: Any) -> Any:
    if data is None:
        return None
    if not isinstance(data, Dataset):
        return _tokens(columns, data, "data")
    if not isinstance(data.train if data.train is not None else data.test, Table):
        raise ValueError(
            f"{data.name} has no names of columns, and the model has: {', '.join(map(repr, columns.names))}"
        )
    parts = {split: getattr(data, split) for split in ("train", "validation", "test")}
    found: dict[str, Any] = {split: _tokens(columns, rows, split) for split, rows in parts.items() if rows is not None}
    return replace(data, space=Space(len(columns.columns), len(columns)), symbols=np.arange(len(columns)), **found)


def _tokens(columns: Columns, rows: Any, what: str) -> np.ndarray:
    return np.asarray(columns.encode(rows, what).numpy().astype(np.int64))
