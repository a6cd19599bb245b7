"""Error of the two-site correlations."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from neurise.alphabet import Alphabet, as_matrix


class CorrelationError(NamedTuple):
    """How far two correlation matrices are apart."""

    mean_abs: float  # mean |ΔC| over pairs i < j
    rms: float  # root mean square of ΔC over pairs i < j
    frobenius: float  # ‖ΔC‖_F / q², over the whole matrix


def cross_correlation(samples: Any, reference: Any) -> CorrelationError:
    """Distance between the correlation matrices (:func:`correlations`) of two sets of rows. Dimensionless."""
    first, second = as_matrix(samples, "samples"), as_matrix(reference, "reference")
    if first.shape[1] != second.shape[1]:
        raise ValueError(f"samples have {first.shape[1]} sites and the reference has {second.shape[1]}")
    if first.shape[1] < 2:
        raise ValueError("correlations need at least two sites")
    symbols = np.unique(np.concatenate([np.unique(first), np.unique(second)]))
    difference = correlations(first, symbols) - correlations(second, symbols)
    pairs = difference[np.triu_indices(len(difference), 1)]
    return CorrelationError(
        float(np.abs(pairs).mean()),
        float(np.sqrt((pairs**2).mean())),
        float(np.linalg.norm(difference) / len(difference) ** 2),
    )


def correlations(rows: Any, alphabet: Any = None) -> np.ndarray:
    r"""Matrix of two-site correlations, (sites, sites).

    :math:`C_{ij} = \langle \sigma_i \sigma_j \rangle` for two symbols, as spins ±1, and
    :math:`C_{ij} = \langle \sum_a 1\{x_i = a\}1\{x_j = a\} \rangle` for more.
    """
    matrix = as_matrix(rows)
    symbols = Alphabet.of(matrix, alphabet)
    tokens = symbols.tokens(matrix, "rows")
    agreement = np.zeros((matrix.shape[1], matrix.shape[1]))
    for token in range(len(symbols)):
        here = (tokens == token).astype(np.float32)  # counts up to 2^24 rows are whole in float32
        agreement += here.T @ here
    agreement /= len(matrix)
    return 2 * agreement - 1 if len(symbols) <= 2 else agreement
