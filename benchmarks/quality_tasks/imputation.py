"""Tables with some cells removed at random: errors and log-loss of filling the categorical ones, against scikit-learn."""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
import pandas as pd

import neurise
from neurise.datasets._sources import locate
from quality_tasks import _imputers
from quality_tasks._fit import Row, fitted

GROUP = "method"
FLOOR = 0.01
"""The share of the frequencies of the symbols in every answer, so that a forest that is sure and wrong has a finite loss."""
BINS = 12
"""Bins of a column of numbers, for models of symbols alone; one with at most twice as many values keeps them all."""
CLEAN = 0.8
"""The share of the examples that ask for a site given all others, which is what filling a gap asks."""

Answers = Mapping[str, np.ndarray]
"""For each categorical column the laws of its missing cells, (cells, categories), in the order of rows and categories."""


def run(arguments: argparse.Namespace) -> Iterator[Row]:
    """Remove cells of some rows of each table; every method learns from what is left and says what was removed."""
    methods: dict[str, Callable[[pd.DataFrame, int], Answers]] = {
        "neurise": lambda table, seed: by_model(arguments, table, seed),
        "forest": _imputers.by_forests,
        "boosting": _imputers.by_boosting,
        "frequencies": _imputers.by_frequencies,
    }
    for name in arguments.names:
        whole = read(name)
        for seed in arguments.seeds:
            rng = np.random.default_rng(seed)
            table = whole.iloc[rng.permutation(len(whole))[: arguments.rows]].reset_index(drop=True)
            gone = pd.DataFrame(rng.random(table.shape) < arguments.gone, columns=table.columns)
            left = table.mask(gone)
            for method in arguments.methods or methods:
                began = time.process_time()
                answers = methods[method](left, seed)
                seconds = time.process_time() - began
                scored = score(table, gone, answers, _imputers.by_frequencies(left, seed))
                yield {"method": f"{name}, {method}", "seed": seed, **scored, "seconds": seconds}


def read(name: str) -> pd.DataFrame:
    """Read a table: words become categories, numbers stay numbers. A column with one value has nothing to say."""
    table = pd.read_csv(locate([f"{name}.csv.gz"], within="tables"), keep_default_na=False)
    table = table.loc[:, table.nunique() > 1]
    words = [column for column in table if not pd.api.types.is_numeric_dtype(table[column])]
    return table.astype({column: "float64" for column in table if column not in words}).astype(
        dict.fromkeys(words, "category")
    )


def by_model(arguments: argparse.Namespace, table: pd.DataFrame, seed: int) -> Answers:
    """Learn all columns together, numbers in bins."""
    bins = {column: bins_of(table[column]) for column in table if column not in _imputers.categorical(table)}
    model, _ = fitted(arguments, seed, table, alphabet=bins, settings={"corrector__clean": CLEAN})
    return {column: model.predict_proba(table[table[column].isna()], column) for column in _imputers.categorical(table)}


def bins_of(values: pd.Series) -> neurise.binning.Bins:
    """Cut a column of numbers: at every value where these are few."""
    known = np.unique(values.dropna())
    if len(known) <= 2 * BINS:
        return neurise.bins(edges=[*known, known[-1] + 1])
    return neurise.bins(BINS)


def score(table: pd.DataFrame, gone: pd.DataFrame, answers: Answers, frequencies: Answers) -> dict[str, float]:
    """Return the share of the cells that are filled wrongly, and the mean of −log P of what was removed, in nats."""
    wrong, losses = list[np.ndarray](), list[np.ndarray]()
    for column, law in answers.items():
        truth = table[column].cat.codes.to_numpy()[gone[column]].astype(int)
        wrong.append(law.argmax(1) != truth)
        mixed = (1 - FLOOR) * law + FLOOR * frequencies[column]
        losses.append(-np.log(mixed[np.arange(len(truth)), truth]))
    cells: dict[str, Any] = {"errors": np.concatenate(wrong).mean(), "log_loss": np.concatenate(losses).mean()}
    return {name: float(value) for name, value in cells.items()} | {"cells": sum(map(len, wrong))}
