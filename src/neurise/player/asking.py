r"""Marginals given what is held, refined as long as somebody looks.

Groups of weighted particles are independent. Group g of :math:`n_g` particles has the marginals :math:`m_g` and the weight
:math:`w_g`, :math:`n_g` times an unbiased estimate of how likely the held sites are; together they say

.. math:: m = \frac{\sum_g w_g m_g}{\sum_g w_g}, \qquad
   \mathrm{se}^2 = \frac{\sum_g w_g^2 (m_g - m)^2}{(\sum_g w_g)^2}\,\frac{G}{G - 1} .
"""

from __future__ import annotations

import math
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
GROUP, FIRST = 256, 32
"""Particles of a group, and of the first one where there are many sites: a rough answer at once beats a better one later."""
MANY_SITES = 100
PATIENCE = 4
"""Groups without a possible particle after which what is held is taken for impossible."""
LOW = 50
"""Effective samples below which the page says that they are few."""


class Tally:
    """What the groups say so far."""

    def __init__(self, states: int) -> None:
        self.tokens = np.arange(states)
        self.means, self.log_weights, self.effective = list[np.ndarray](), list[float](), list[float]()

    def add(self, group: by_tokens.Group) -> None:
        """Count a group."""
        self.means.append((group.tokens[..., None] == self.tokens).mean(0))
        self.log_weights.append(group.log_weight + math.log(len(group.tokens)))
        self.effective.append(group.effective)

    def result(self) -> tuple[np.ndarray, np.ndarray, float]:
        """Return marginals and standard errors, (sites, states) each, and the effective number of samples."""
        log_weights = np.array(self.log_weights)
        weights = np.exp(log_weights - log_weights.max())
        share = weights / weights.sum()
        means = np.stack(self.means)  # (groups, sites, states)
        mean = np.tensordot(share, means, 1)
        worth = 1 / float((share**2 / np.array(self.effective)).sum())
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
    tally, told, drawn, number = Tally(states), 0.0, 0, 0
    while drawn < rows:
        size = FIRST if number == 0 and sites > MANY_SITES else GROUP
        group = by_tokens.group(actor.model, size, clamp, label, seed + number)
        drawn += size
        number += 1
        if group.effective:
            tally.add(group)
        elif not tally.means and (number == PATIENCE or drawn >= rows):
            raise ValueError("the model gives what is held probability zero: nothing can be drawn; clear some sites")
        first = bool(tally.means) and not told
        if first or (tally.means and drawn >= rows) or (told and time.monotonic() - told > TOLD):
            mean, error, worth = tally.result()
            told = time.monotonic()
            yield {
                "kind": "marginals",
                "mean": np.round(mean, 4).tolist(),
                "error": np.round(error, 4).tolist(),
                "effective": round(worth, 1),
                "low": worth < LOW,
                "done": min(1.0, drawn / rows),
                "rows": group.tokens[:SHOWN_ROWS].tolist() if first else None,
            }
        else:
            yield {"kind": "progress", "done": min(1.0, drawn / rows)}
