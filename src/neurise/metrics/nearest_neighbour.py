"""Memorisation: how close samples come to the training rows."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import torch
from torch import Tensor

from neurise.estimate import Estimate
from neurise.metrics._hamming import tiles
from neurise.metrics._rows import tokens


class NearestDistances(NamedTuple):
    """Distances to the nearest training row: of samples, and of rows that were not trained on."""

    distance: Estimate  # mean over samples, in sites; floor: that of the held-out rows
    copies: Estimate  # fraction of samples that are training rows; floor: that of the held-out rows
    held_out_distance: Estimate
    held_out_copies: Estimate


def nearest_neighbour(samples: Any, training: Any, held_out: Any, *, alphabet: Any = None) -> NearestDistances:
    r"""Mean Hamming distance to the nearest training row, in sites, and fraction of exact copies.

    .. math:: D = \frac1n \sum_i \min_j d_H(x_i, y_j), \qquad
       C = \frac1n \sum_i 1\bigl\{\min_j d_H(x_i, y_j) = 0\bigr\}

    The floor is the same of the held-out rows. A model that memorises scores a smaller distance and more copies than it,
    at the extreme 0 and 1; a good one the same; one that has yet to learn, a larger distance. Each row counts by itself, so
    the numbers of samples and held-out rows need not agree, and neither does the floor depend on them.

    Errors are standard errors over the samples, for this training set. That of a fraction k/n is the one at
    (k+1)/(n+2), so that no copies among few samples are not taken for certainty.

    >>> import neurise
    >>> neurise.metrics.nearest_neighbour([[0, 0, 0]] * 4, [[0, 0, 0], [1, 1, 1]], [[0, 0, 1], [1, 1, 1]]).copies
    1 ± 0.19 (floor 0.5)
    """
    known = tokens(alphabet, samples=samples, training=training, held_out=held_out)
    x, y, z = known.sets
    for name, rows in (("samples", x), ("held_out", z)):
        if len(rows) < 2:
            raise ValueError(f"{name} has {len(rows)} rows; at least 2 are needed for a standard error")
    states = known.space.states
    real_distance, real_copies = _summary(_nearest(z, y, states), None, None)
    distance, copies = _summary(_nearest(x, y, states), float(real_distance), float(real_copies))
    return NearestDistances(distance, copies, real_distance, real_copies)


def _nearest(x: Tensor, y: Tensor, states: int) -> Tensor:
    """Distance from each row of x to the nearest row of y, (n,) float64."""
    most = torch.zeros(len(x), device=x.device)
    for rows, _, agreement in tiles(x, y, states):
        most[rows] = torch.maximum(most[rows], agreement.amax(dim=1))
    return x.shape[1] - most.double()


def _summary(nearest: Tensor, distance: float | None, copies: float | None) -> tuple[Estimate, Estimate]:
    """Mean distance and fraction of copies, with the floors that are given."""
    n, k = len(nearest), int((nearest == 0).sum())
    error = float(nearest.std()) / math.sqrt(n)
    fraction = (k + 1) / (n + 2)
    return (
        Estimate(float(nearest.mean()), error=error, floor=distance, units="sites"),
        Estimate(k / n, error=math.sqrt(fraction * (1 - fraction) / n), floor=copies),
    )
