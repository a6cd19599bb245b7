"""Measure a model on rows that it has not learnt from, or warn where that is not possible."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

from neurise.dataset import Dataset
from neurise.evaluation.case import Truth
from neurise.holdout import hold_back
from neurise.modeling.model import Model


def held_back(model: Any, data: Dataset) -> Dataset | None:
    """Return the data with the same rows held back as in training; None for other data."""
    alone = (data.train is None) != (data.test is None)  # one lot of rows, from which some may be held back
    if not isinstance(model, Model) or model.split_ is None or not alone or data.draw is not None:
        return None
    lot = data if data.train is not None else as_training_rows(data)
    try:
        found = hold_back(lot, model.split_)
    except ValueError:  # too few rows: this is other data
        return None
    return found if found.train is not None and model.schema_.is_of(found.train, found.weights) else None


def as_training_rows(data: Dataset) -> Dataset:
    """Call the test rows of a data set its training rows."""
    empty: dict[str, Any] = {"test": None, "test_labels": None, "test_weights": None}
    return replace(data, train=data.test, labels=data.test_labels, weights=data.test_weights, **empty)


def described(model: Any, truth: Truth, again: bool) -> str:
    """Say which rows a model is measured on, held back ``again`` or others; warn where it has learnt from them."""
    rows = truth.rows
    count = f"{len(rows.X):,} rows"
    if again:
        return f"{count} that were held back from its training"
    if truth.data.test is None and truth.data.draw is not None:
        return f"{count} drawn from the law"
    if not isinstance(model, Model) or not model.schema_.is_of(rows.X, rows.weights):
        return count
    warnings.warn(
        f"these {count} are those that the model learnt from: scores on them flatter it, and say nothing about new rows. "
        "Hold some back before training (neurise train --test-fraction 0.2), or give other rows",
        stacklevel=3,
    )
    return f"{count} that it learnt from"
