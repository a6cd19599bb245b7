r"""Tables of pair interactions without ambiguity: the zero-sum gauge, and the numbers that are read off it.

A pairwise law fixes its tables :math:`W_{ij}(a, b)` only up to functions of a alone and of b alone, which fields can take
over. In the zero-sum gauge every row and column of a table sums to zero, and the table is

.. math:: D(a, b) = W(a, b) - W(\cdot, b) - W(a, \cdot) + W(\cdot, \cdot),

a dot for the mean: an average of second differences of :math:`\log \mu`.
"""

from __future__ import annotations

import numpy as np


def zero_sum(tables: np.ndarray) -> np.ndarray:
    """Bring tables, (..., states, states), into the zero-sum gauge."""
    rows = tables - tables.mean(axis=-1, keepdims=True)
    centred: np.ndarray = rows - rows.mean(axis=-2, keepdims=True)
    return centred


def couplings_of(tables: np.ndarray) -> np.ndarray:
    r"""One number for each table in the zero-sum gauge, (..., states, states) → (...).

    Two states: the J of :math:`J\sigma\sigma'`, a quarter of the second difference. More: the J of the Potts coupling
    :math:`J\,1\{a = b\}` nearest to the table, :math:`\sum_a D(a, a) / (p - 1)`.
    """
    states = tables.shape[-1]
    trace: np.ndarray = np.trace(tables, axis1=-2, axis2=-1)
    return trace / 2 if states == 2 else trace / max(states - 1, 1)


def scores_of(tables: np.ndarray) -> np.ndarray:
    """How strong each interaction is, (...): |J| for two states, else the Frobenius norm of the table."""
    norms: np.ndarray = np.sqrt((tables**2).sum(axis=(-2, -1)))
    return norms / norm_of_one(tables.shape[-1])


def norm_of_one(states: int) -> float:
    """How large the Frobenius norm of a table of score 1 is."""
    return 2.0 if states == 2 else 1.0
