r"""Marginals given what is held, refined as long as somebody looks.

Groups of weighted particles are independent. Group g has the marginals :math:`m_g` and the weight :math:`w_g`, an unbiased
estimate of how likely the held sites are; together they say

.. math:: m = \frac{\sum_g w_g m_g}{\sum_g w_g}, \qquad
   \mathrm{se}^2 = \frac{\sum_g w_g^2 (m_g - m)^2}{(\sum_g w_g)^2}\,\frac{G}{G - 1} .
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import numpy as np

from neurise.modeling import by_tokens
from neurise.player.wishes import Wish

FEW_GROUPS = 8
"""Groups from which on their spread says how large the error is; before, it is that of as many independent rows."""
TOLD = 0.2
"""Seconds between two messages, after the first."""
SHOWN_ROWS = 12
LOW = 50
"""Effective samples below which the page says that they are few."""


class Tally:
    """What the groups say so far."""

    def __init__(self, sites: int, states: int) -> None:
        self.tokens = np.arange(states)
        self.means, self.log_weights, self.effective = list[np.ndarray](), list[float](), list[float]()

    def add(self, group: by_tokens.Group) -> None:
        """Count a group."""
        self.means.append((group.tokens[..., None] == self.tokens).mean(0))
        self.log_weights.append(group.log_weight)
        self.effective.append(group.effective)

    def result(self) -> tuple[np.ndarray, np.ndarray, float]:
        """Return marginals and standard errors, (sites, states) each, and the effective number of samples."""
        log_weights = np.array(self.log_weights)
        weights = np.exp(log_weights - log_weights.max())
        share = weights / weights.sum()
        means = np.stack(self.means)  # (groups, sites, states)
        mean = np.tensordot(share, means, 1)
        worth = float(np.mean(self.effective)) / float((share**2).sum())
        spread = np.clip(mean * (1 - mean), 0, None)  # rounding may leave a little less than nothing
        if len(share) < FEW_GROUPS:
            return mean, np.sqrt(spread / worth), worth
        error = np.sqrt(np.tensordot(share**2, (means - mean) ** 2, 1) * len(share) / (len(share) - 1))
        return mean, np.maximum(error, np.sqrt(spread / sum(self.effective))), worth


def ask(wish: Wish) -> Iterator[dict[str, Any]]:
    """Draw groups given what is held, and tell the marginals after the first of them and every now and then."""
    actor, clamp, label, seed = wish.actor, wish.clamp, wish.label, wish.seed
    rows = wish.whole("rows", 64, 2**15, 4096)
    sites, states = wish.sites, actor.model.space_.states
    size = 256 if sites <= 100 else 64
    tally, told = Tally(sites, states), 0.0
    for number in range(-(-rows // size)):
        group = by_tokens.group(actor.model, size, clamp, label, seed + number)
        if not group.effective:
            raise ValueError("the model gives what is held probability zero: nothing can be drawn; clear some sites")
        tally.add(group)
        last = (number + 1) * size >= rows
        if number == 0 or last or time.monotonic() - told > TOLD:
            mean, error, worth = tally.result()
            told = time.monotonic()
            yield {
                "kind": "marginals",
                "mean": np.round(mean, 4).tolist(),
                "error": np.round(error, 4).tolist(),
                "effective": round(worth, 1),
                "low": worth < LOW,
                "done": min(1.0, (number + 1) * size / rows),
                "rows": group.tokens[:SHOWN_ROWS].tolist() if number == 0 else None,
            }
        else:
            yield {"kind": "progress", "done": (number + 1) * size / rows}
