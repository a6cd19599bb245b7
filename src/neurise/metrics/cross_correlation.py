"""Error of the two-site correlations."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from neurise.batching import batches
from neurise.estimate import Estimate
from neurise.metrics._blocks import compare
from neurise.metrics._groups import check_groups, sums_over
from neurise.metrics._rows import spins, tokens
from neurise.metrics._weights import Weights


class CorrelationError(NamedTuple):
    """How far two correlation matrices are apart."""

    mean_abs: Estimate  # mean |ΔC| over pairs i < j
    rms: Estimate  # root mean square of ΔC over pairs i < j
    frobenius: Estimate  # ‖ΔC‖_F / q², over the whole matrix


def cross_correlation(
    samples: Any,
    reference: Any,
    *,
    couplers: Any = None,
    other: Any = None,
    reference_weights: Any = None,
    alphabet: Any = None,
    seed: int = 0,
) -> CorrelationError:
    r"""Distance between the correlation matrices (:func:`correlations`) of two sets of rows, without units.

    With :math:`\Delta_{ij} = C_{ij} - C'_{ij}`: the mean :math:`|\Delta_{ij}|` and the root mean square of
    :math:`\Delta_{ij}` over pairs i < j, and :math:`\|\Delta\|_F / q^2`, to which the diagonal adds nothing.
    ``couplers``, (m, 2) numbers of sites, restricts all three to those pairs; each pair counts once.
    ``reference_weights`` are counts or importances of the reference's rows.

    **Floor.** The score of as many rows of ``other``, a second set of real rows, against the reference; without it, of random
    halves of the reference against each other. Where sizes differ, they are rescaled to those of ``samples`` and
    ``reference``: Δ of a perfect model falls with the root of :math:`1/n + 1/N`.

    **Error.** The spread over new draws of both sets, by leaving out one in twenty blocks of rows. Too wide rather than too
    narrow near the floor. ``seed`` shuffles the rows into blocks: rows are taken to be independent.

    >>> import neurise
    >>> data = neurise.datasets.edwards_anderson(side=2, seed=0)
    >>> first, second = data.sample(500, seed=0), data.sample(500, seed=1)
    >>> found = neurise.metrics.cross_correlation(first, second)
    >>> found.mean_abs < 3 * found.mean_abs.floor                # two samples of one law
    True
    """
    rows = {"samples": samples, "reference": reference} | ({} if other is None else {"other": other})
    known = tokens(alphabet, **rows)
    sites, states = known.space.sites, known.space.states
    if sites < 2:
        raise ValueError("correlations need at least two sites")
    device = known.sets[0].device
    weights = Weights.of(reference_weights, len(known.sets[1]), "reference_weights")
    if couplers is None:
        above = torch.triu_indices(sites, sites, 1, device=device)
        number = above.shape[1]
    else:
        pairs = check_groups(couplers, sites, 2, "couplers").to(device)
        number = len(pairs)

    def measure(x: Tensor, masses: Tensor | None) -> Tensor:
        if couplers is None:
            return products(x, states, masses)[above[0], above[1]]
        return sums_over(x, pairs, states, masses)

    def scores(difference: Tensor) -> Tensor:
        square = (difference**2).mean()
        norm = (2 * len(difference) * square).sqrt() / sites**2
        return torch.stack([difference.abs().mean(), square.sqrt(), norm])

    return CorrelationError(*compare(known.sets, measure, number, scores, weights, seed=seed))


def correlations(rows: Any, alphabet: Any = None) -> np.ndarray:
    r"""Matrix of two-site correlations, (sites, sites).

    :math:`C_{ij} = \langle \sigma_i \sigma_j \rangle` for two symbols, as spins ±1, and
    :math:`C_{ij} = \langle \sum_a 1\{x_i = a\}1\{x_j = a\} \rangle` for more.
    """
    known = tokens(alphabet, rows=rows)
    x = known.sets[0]
    matrix: np.ndarray = (products(x, known.space.states) / len(x)).cpu().numpy()
    return matrix


def products(x: Tensor, states: int, masses: Tensor | None = None) -> Tensor:
    r"""Sums of :math:`\sigma_i \sigma_j` (two states) or of :math:`1\{x_i = x_j\}` over rows, (sites, sites) float64."""
    total = torch.zeros((x.shape[1], x.shape[1]), dtype=torch.float64, device=x.device)
    # Whole numbers up to 2^24 are exact in float32; masses need more.
    precision = torch.float32 if masses is None else torch.float64
    for piece in batches(len(x), 16 * x.shape[1]):
        for token in range(states) if states > 2 else (None,):
            here = spins(x[piece], precision) if token is None else (x[piece] == token).to(precision)
            total += (here if masses is None else here * masses[piece, None]).T @ here
    return total
