"""The rows of the data that a page compares with: so many of them, in no order, as often as their weights say."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

MOST_KEPT = 20_000
"""Rows of the data that are held to compare with."""


class KeptRows(NamedTuple):
    """Tokens, (N, sites), and the label of each row as it is written; None where the data have none."""

    rows: np.ndarray
    labels: np.ndarray | None

    def with_label(self, label: str) -> np.ndarray | None:
        """Say which rows have a label, (N,); None where that is not known."""
        return None if self.labels is None else self.labels == label


def kept_places(rows: int, weights: np.ndarray | None, most: int = MOST_KEPT) -> np.ndarray:
    r"""Choose numbers of rows: row i with weight :math:`w_i` stands for a share :math:`w_i / \sum_j w_j` of the data.

    Counts that are whole and few are written out; other weights are drawn from. The order is mixed, for a file may be sorted
    and parts of it are compared with one another.

    >>> sorted(kept_places(3, np.array([2.0, 0.0, 1.0])).tolist())
    [0, 0, 2]
    """
    rng = np.random.default_rng(0)
    if weights is None:
        return rng.permutation(rows)[:most]
    mass = np.asarray(weights, dtype=float)
    if mass.sum() <= most and np.array_equal(mass, np.round(mass)):
        return rng.permutation(np.repeat(np.arange(rows), mass.astype(int)))
    return rng.choice(rows, most if mass.sum() > most else max(1, round(float(mass.sum()))), p=mass / mass.sum())
