"""Put the rows that a model has learnt from beside those that it is measured on: what tells whether it copies them."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

import numpy as np

from neurise.dataset import Dataset
from neurise.evaluation.unseen import as_training_rows, held_back
from neurise.modeling.model import Model
from neurise.space import MAX_STATES


def with_training_rows(model: Any, data: Dataset, given: Dataset) -> Dataset:
    """Take the training rows of ``given`` in the place of those of ``data``, whose rows are all there to be measured on.

    Where the model held a part of ``given`` back, only the others are training rows. A warning says so where the model has learnt
    from other rows than these.
    """
    lot = held_back(model, given) or (given if given.train is not None else as_training_rows(given))
    if lot.train is None:
        raise ValueError(f"{given.name} has no rows that a model could have learnt from")
    if lot.space.sites != data.space.sites:
        raise ValueError(f"the training rows have {lot.space.sites} sites, and {data.name} has {data.space.sites}")
    if len({symbols.dtype.kind in "US" for symbols in (lot.symbols, data.symbols)}) > 1:
        raise ValueError(
            f"the training rows hold {lot.symbols.tolist()[:10]}, and {data.name} {data.symbols.tolist()[:10]}: letters and "
            "numbers cannot be compared"
        )
    if isinstance(model, Model) and model.schema_.digest and not model.schema_.is_of(lot.train, lot.weights):
        warnings.warn(
            f"the model has not learnt from these {len(lot.train):,} training rows, or from more than these: how near its "
            "samples come to them says nothing about the rows that it did learn from",
            stacklevel=3,
        )
    measured = data
    if data.test is None and data.draw is None:
        empty: dict[str, Any] = {"train": None, "labels": None, "weights": None}
        measured = replace(data, test=data.train, test_labels=data.labels, test_weights=data.weights, **empty)
    symbols = data.symbols
    if data.law is None and not np.isin(lot.symbols, symbols).all():
        symbols = np.unique(np.concatenate([symbols, lot.symbols]))
    space = replace(data.space, states=min(MAX_STATES, len(symbols)))
    return replace(measured, space=space, symbols=symbols, train=lot.train, labels=lot.labels, weights=lot.weights)
