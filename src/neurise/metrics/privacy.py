"""Privacy: how much nearer synthetic rows come to training rows than rows that were held back do."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from neurise.estimate import Estimate
from neurise.metrics._rows import tokens
from neurise.metrics.nearest_neighbour import NearestDistances, nearest_neighbour


class Closeness(NamedTuple):
    """Distances to the closest training record, in shares of the sites, and copies, beside those of held-back rows."""

    distance: Estimate  # mean over synthetic rows; floor: that of the held-back rows
    nearer: Estimate  # held-back distance minus synthetic distance: above 0, synthetic rows are nearer than new ones
    copies: Estimate  # share of synthetic rows that are training rows; floor: that of the held-back rows
    copies_beyond_chance: Estimate  # the difference of the two shares

    @classmethod
    def of(cls, near: NearestDistances, sites: int) -> Closeness:
        """Compare the distances that were found of rows of so many sites."""
        pairs = ((near.held_out_distance, near.distance, sites), (near.copies, near.held_out_copies, 1))
        nearer, beyond = (
            Estimate((first - second) / scale, error=_both(first, second) / scale, floor=0.0)
            for first, second, scale in pairs
        )
        error, floor = (None if part is None else part / sites for part in (near.distance.error, near.distance.floor))
        return cls(Estimate(near.distance / sites, error=error, floor=floor), nearer, near.copies, beyond)


def privacy(synthetic: Any, training: Any, held_back: Any, *, alphabet: Any = None) -> Closeness:
    r"""Compare the distance to the closest training record of synthetic rows with that of held-back rows.

    With :math:`d(x) = \frac1q \min_j d_H(x, y_j)`, the share of sites at which x differs from the closest training row,

    .. math:: \text{distance} = \langle d \rangle_\text{synthetic}, \qquad
       \text{nearer} = \langle d \rangle_\text{held back} - \langle d \rangle_\text{synthetic}, \qquad
       \text{copies beyond chance} = P_\text{synthetic}(d = 0) - P_\text{held back}(d = 0).

    Held-back rows are real and were not learnt from, so that whatever of them equals or resembles a training row does so by
    chance. A model that has learnt the law and not the rows scores 0 in both differences, within the error; one that hands out
    its training rows scores up to 1. Errors are standard errors over both sets of rows, for this training set.

    This measures copying. It bounds nothing: it is no differential privacy, and a row that tells something of one
    person without resembling that person's record is not seen. Memory is bounded whatever the numbers of rows are; the time
    is their product.

    >>> import neurise, numpy as np
    >>> training, held_back = np.random.default_rng(0).integers(0, 2, (2, 100, 30))
    >>> neurise.metrics.privacy(training[:50], training, held_back).copies_beyond_chance
    1 ± 0.022 (floor 0)
    """
    known = tokens(alphabet, synthetic=synthetic, training=training, held_back=held_back)
    for name, rows in zip(("synthetic", "held_back"), known.sets[::2], strict=True):
        if len(rows) < 2:
            raise ValueError(f"{name} has {len(rows)} rows; at least 2 are needed for a standard error")
    return Closeness.of(nearest_neighbour(*known.sets, alphabet=range(len(known.alphabet))), known.space.sites)


def _both(first: Estimate, second: Estimate) -> float:
    """Return the standard error of a difference of two independent estimates."""
    return math.hypot(first.error or 0.0, second.error or 0.0)
