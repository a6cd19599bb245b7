"""Hold test rows back from a data set before anything is learnt from it, so that it can be done again later."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import torch

from neurise import checks
from neurise.dataset import Dataset
from neurise.rows import Rows, split


class Split(NamedTuple):
    """How test rows were chosen: the same fraction and seed choose the same rows of the same data."""

    test_fraction: float
    seed: int


def hold_back(data: Dataset, chosen: Split) -> Dataset:
    """Make test rows of a fraction of the training rows, drawn at random.

    Of rows with counts, each *observation* goes to one side or the other (:func:`neurise.rows.split`): a row seen m times is
    tested Binomial(m, fraction) times.
    """
    fraction = checks.share("test_fraction", chosen.test_fraction)
    if data.train is None or fraction == 0:
        raise ValueError(
            f"{data.name} has no rows to hold some back from, or none are wanted (test_fraction={fraction})"
        )
    if data.test is not None:
        raise ValueError(f"{data.name} comes with {len(data.test):,} test rows of its own; leave the test fraction out")
    weights = None if data.weights is None else torch.from_numpy(np.asarray(data.weights, dtype=np.float64))
    places = Rows(torch.arange(len(data.train))[:, None], weights=weights)
    kept, held = split(places, fraction, generator=torch.Generator().manual_seed(checks.seed(chosen.seed)))
    if held is None:
        raise ValueError(
            f"{data.name} has {len(data.train)} rows: a fraction of {fraction} leaves one side without any"
        )
    train, labels, masses = _part(data, kept)
    test, test_labels, test_masses = _part(data, held)
    return replace(
        data,
        train=train,
        labels=labels,
        weights=masses,
        test=test,
        test_labels=test_labels,
        test_weights=test_masses,
    )


def _part(data: Dataset, places: Rows) -> tuple[np.ndarray, np.ndarray | None, np.ndarray | None]:
    assert data.train is not None
    index = places.x[:, 0].numpy()
    own: Any = None if places.weights is None or data.weights is None else places.weights.numpy()
    return data.train[index], None if data.labels is None else data.labels[index], own
