"""A person's view of a data set, as plain facts."""

from __future__ import annotations

from typing import Any

import numpy as np

from neurise.alphabet import Alphabet
from neurise.cli._column_lines import ColumnFacts, columns_of
from neurise.dataset import Dataset

CELLS = 2**26
"""Cells that are looked at; of a larger data set, rows at equal distances."""
PAIR_ROWS = 2**15
FEATURES = 2**12
"""Rows and columns of the matrix that correlations are taken from."""
STRONGEST, HANDFUL = 5, 5
BLOCK = 2**22


def summary(dataset: Dataset) -> dict[str, Any]:
    """Collect what there is to say, in JSON's types."""
    rows = dataset.train
    facts: dict[str, Any] = {
        "name": dataset.name,
        "rows": None if rows is None else len(rows),
        "validation": None if dataset.validation is None else len(dataset.validation),
        "test": None if dataset.test is None else len(dataset.test),
        "sites": dataset.space.sites,
        "states": dataset.space.states,
        "symbols": dataset.symbols.astype(str if dataset.symbols.dtype.kind in "US" else np.int64).tolist(),
        "shape": None if dataset.shape is None else list(dataset.shape),
        "law": dataset.law is not None,
        "couplers": None if dataset.edges is None else len(dataset.edges),
        "missing": dataset.info.get("missing", {"cells": 0, "rows": 0, "first": None}),
        "histogram": bool(dataset.info.get("histogram", False)),
        "weights": _weights(dataset.weights),
        "labels": _labels(dataset.labels),
        "info": {key: value for key, value in dataset.info.items() if isinstance(value, str | int | float | bool)},
    }
    if rows is None:
        return facts
    step = -(-rows.size // CELLS)
    tokens = _tokens(dataset, rows[::step])
    weights = None if dataset.weights is None else dataset.weights[::step].astype(np.float64)
    constant = np.flatnonzero((tokens == tokens[0]).all(axis=0))
    return facts | {
        "rows_looked_at": len(tokens),
        "distinct_rows": len(np.unique(tokens.view(f"V{tokens.shape[1]}"))),
        "constant_sites": {str(site): facts["symbols"][tokens[0, site]] for site in constant.tolist()},
        "correlations": strongest_pairs(tokens, dataset.space.states, weights),
    }


def columns(dataset: Dataset) -> list[ColumnFacts]:
    """Count the symbols of each column, by their weights where there are any."""
    rows = dataset.train
    if rows is None:
        return []
    step = -(-rows.size // CELLS)
    weights = None if dataset.weights is None else dataset.weights[::step].astype(np.float64)
    return columns_of(_tokens(dataset, rows[::step]), [str(symbol) for symbol in dataset.symbols.tolist()], weights)


def strongest_pairs(tokens: np.ndarray, states: int, weights: np.ndarray | None = None) -> dict[str, Any]:
    r"""Find the most strongly correlated pairs of sites.

    For two states it is the correlation coefficient; for more of them Cramér's V, which is its absolute value for two,

    .. math:: V_{ij}^2 = \frac{1}{\min(k_i, k_j) - 1} \sum_{ab} \frac{[f_{ij}(a,b) - f_i(a) f_j(b)]^2}{f_i(a) f_j(b)},

    with :math:`k_i` the number of states that occur at site i. ``noise`` is what independent sites would show.
    """
    step = -(-len(tokens) // PAIR_ROWS)
    columns = 1 if states <= 2 else states
    sites = min(tokens.shape[1], FEATURES // columns)
    x = tokens[::step, :sites]
    mass = np.ones(len(x)) if weights is None else weights[::step]
    if mass.sum() <= 0 or sites < 2:
        return {"measure": "none", "noise": None, "sites": sites, "pairs": []}
    effective = observations(mass)
    mass = mass / mass.sum()
    counted = np.arange(1, 2) if columns == 1 else np.arange(states)
    share = np.stack([mass @ (x == state) for state in counted], axis=1)  # (sites, columns)
    occurring = (share > 0).sum(axis=1) if columns > 1 else 1 + (x != x[0]).any(axis=0)
    spread = np.sqrt(share if columns > 1 else (share * (1 - share)).clip(min=0))  # a share may be 1 and a rounding
    scale = np.divide(1.0, spread, out=np.zeros_like(spread), where=spread > 1e-9)
    gram = np.zeros((sites * columns, sites * columns))
    block = max(1, BLOCK // (sites * columns))
    for start in range(0, len(x), block):
        part = slice(start, start + block)
        features = ((x[part, :, None] == counted) - share) * scale * np.sqrt(mass[part])[:, None, None]
        flat = features.reshape(len(features), -1).astype(np.float32)
        gram += flat.T @ flat
    if columns == 1:
        strength = gram
    else:
        squares = (gram**2).reshape(sites, columns, sites, columns).sum(axis=(1, 3))
        strength = np.sqrt(squares / (np.minimum(occurring[:, None], occurring) - 1).clip(min=1))
    rest = 1 - share.max(axis=1) if columns > 1 else np.minimum(share, 1 - share)[:, 0]
    # A site that differs in a handful of rows correlates with whatever else happens in them.
    varies = rest * effective >= HANDFUL
    others = max(1, int(np.median(occurring)) - 1)
    return {
        "measure": "correlation" if columns == 1 else "cramers_v",
        "noise": float(np.sqrt(others / effective)),
        "sites": sites,
        "pairs": _top(strength, varies if varies.sum() > 1 else occurring > 1),
    }


def observations(weights: np.ndarray) -> float:
    r"""How many observations weighted rows stand for.

    Whole numbers are counts, as everywhere: each row was seen so often, and the sum is the answer. Other weights are
    importances, and rows of unequal importance are worth :math:`(\sum w)^2 / \sum w^2` equal ones.
    """
    total = float(weights.sum())
    return total if are_counts(weights) else total**2 / float((weights**2).sum())


def are_counts(weights: np.ndarray) -> bool:
    """Whether weights say how often rows were seen."""
    return bool((weights == np.floor(weights)).all())


def _top(strength: np.ndarray, varies: np.ndarray) -> list[dict[str, Any]]:
    first, second = np.triu_indices(len(strength), 1)
    both = varies[first] & varies[second]
    first, second = first[both], second[both]
    values = strength[first, second]
    order = np.argsort(-np.abs(values), kind="stable")[:STRONGEST]
    return [{"sites": [int(first[k]), int(second[k])], "value": float(values[k])} for k in order]


def _tokens(dataset: Dataset, rows: np.ndarray) -> np.ndarray:
    alphabet = Alphabet.of(dataset.symbols[:, None], dataset.symbols.tolist())
    tokens = np.empty(rows.shape, dtype=np.uint8)
    step = max(1, BLOCK // rows.shape[1])
    for start in range(0, len(rows), step):
        tokens[start : start + step] = alphabet.encode(rows[start : start + step]).numpy()
    return tokens


def _weights(weights: np.ndarray | None) -> dict[str, Any] | None:
    if weights is None:
        return None
    values = weights.astype(np.float64)
    return {
        "sum": float(values.sum()),
        "smallest": float(values.min()),
        "largest": float(values.max()),
        "whole": are_counts(values),
        "effective_rows": observations(values) if values.any() else 0.0,
    }


def _labels(labels: np.ndarray | None) -> dict[str, int] | None:
    if labels is None:
        return None
    classes, counts = np.unique(labels, return_counts=True)
    return dict(zip(map(str, classes.tolist()), counts.tolist(), strict=True))
