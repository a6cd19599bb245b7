"""Averages over contexts, each weighted by how much it tells."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from neurise.structure.evaluations import Evaluations
from neurise.structure.gauge import zero_sum
from neurise.structure.sources import LawSource


class Averages(NamedTuple):
    """Weighted averages over all contexts; NaN where no context has any weight."""

    tables: np.ndarray  # (pairs, states, states), zero-sum
    weights: (
        np.ndarray
    )  # (pairs,): total weight, the number of rows that a perfectly balanced table would need, over p²
    singles: np.ndarray  # (R, sites, states): log-conditionals of every site in every context, up to a constant


def information(log_table: np.ndarray) -> np.ndarray:
    r"""Inverse variance of the log-odds in one observation of a table, :math:`[\sum_a 1/\mu_a]^{-1}`.

    The last axis of ``log_table`` holds the logarithms of the outcomes' probabilities up to a constant: (..., outcomes) →
    (...). A table with an impossible outcome tells nothing: 0.
    """
    with np.errstate(invalid="ignore", over="ignore", divide="ignore"):
        weight = np.exp(log_table - log_table.max(axis=-1, keepdims=True))
        told = 1 / (weight.sum(axis=-1, keepdims=True) / weight).sum(axis=-1)
    return np.where(np.isfinite(told), told, 0.0)


def average(source: LawSource, x: np.ndarray, masses: np.ndarray, *, verbose: bool | None) -> Averages:
    """Average the tables of all pairs over rows of tokens, (R, sites), that weigh as much as ``masses``, (R,)."""
    evaluations = Evaluations(source.evaluations(len(x)), verbose=verbose)
    source.count = evaluations.count
    step, singles = source.rows_at_once(), []
    total = weighed = np.zeros(1)
    try:
        for start in range(0, len(x), step):
            part = slice(start, start + step)
            one, two = source.tables(x[part])
            weights = masses[part, None] * information(two.reshape(*two.shape[:2], -1))  # (R, pairs)
            told = (weights > 0)[..., None, None]
            tables = zero_sum(np.where(told, two, 0.0))
            total = total + weights.sum(axis=0)
            weighed = weighed + np.einsum("rp,rpab->pab", weights, tables)
            singles.append(one)
    finally:
        evaluations.close()
    with np.errstate(invalid="ignore"):
        return Averages(weighed / total[:, None, None], total, np.concatenate(singles))


def field_weights(singles: np.ndarray, masses: np.ndarray) -> np.ndarray:
    """Weight of each context in the field of each site, (R, sites)."""
    weights: np.ndarray = masses[:, None] * information(singles)
    return weights


def fields_of(tables: np.ndarray, singles: np.ndarray, x: np.ndarray, masses: np.ndarray) -> np.ndarray:
    r"""Fields that are left when the tables, (sites, sites, states, states), are taken off the log-conditionals.

    .. math:: f_i(a) = \bigl\langle \log \mu(x_i = a \mid x_{-i}) - \textstyle\sum_j D_{ij}(a, x_j) \bigr\rangle_w,
       \qquad \textstyle\sum_a f_i(a) = 0

    (sites, states); NaN at a site that never varies. What such a site does to the others is part of their fields.
    """
    sites, states = singles.shape[1:]
    weights = field_weights(singles, masses)
    clean = np.where((weights > 0)[..., None], singles, 0.0)
    seen = (x[:, :, None] == np.arange(states)).reshape(len(x), -1).astype(float)
    known = np.nan_to_num(tables).transpose(1, 3, 0, 2).reshape(sites * states, sites * states)  # [(j, b), (i, a)]
    rest = clean - clean.mean(axis=-1, keepdims=True) - (seen @ known).reshape(len(x), sites, states)
    with np.errstate(invalid="ignore"):
        fields: np.ndarray = np.einsum("ri,ria->ia", weights, rest) / weights.sum(axis=0)[:, None]
    return fields
