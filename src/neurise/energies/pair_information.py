r"""How much two sites that interact tell about each other beyond what all other sites tell about both.

.. math:: I(x_i; x_j \mid x_{-ij}) = \mathbb{E}_\mu \sum_{a,b} \mu(a, b \mid x_{-ij})
   \log \frac{\mu(a, b \mid x_{-ij})}{\mu(a \mid x_{-ij})\, \mu(b \mid x_{-ij})}

In every law ν without a direct interaction of the two they are independent given the rest, and so
:math:`\mathrm{KL}(\mu \,\Vert\, \nu) \ge I(x_i; x_j \mid x_{-ij})`. The conditional law of two sites of a pairwise energy
has a field on each of them and their coupling; the mean is one over draws.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from neurise.energies.family import Family
from neurise.energies.maximum_likelihood import Fit

DRAWS = 4000
"""Draws of the law, of all classes together."""
BLOCK = 2**22
"""Numbers that are held at a time."""


def of(found: Fit, shares: Tensor, *, seed: int = 0) -> np.ndarray:
    """Return the information of each pair in nats, (pairs,); a mean over the classes by their ``shares``."""
    family, rng = found.family, np.random.default_rng(seed)
    total = torch.zeros(len(family.edges), dtype=torch.float64)
    for kind, (share, one) in enumerate(zip(shares.tolist(), found.solved, strict=True)):
        rows = one.draw(max(2, round(DRAWS * share)), rng)
        total += share * _mean(family, found.theta, kind, rows)
    return total.numpy()


def _mean(family: Family, theta: Tensor, kind: int, rows: Tensor) -> Tensor:
    fields, tables = family.tables(theta, kind)
    first, second = torch.from_numpy(family.edges).unbind(1)
    logits = _logits(family, fields, tables, rows.long())
    found = torch.zeros(len(family.edges), dtype=torch.float64)
    step = max(1, BLOCK // max(1, len(rows) * family.space.states**2))
    for start in range(0, len(found), step):
        i, j, table = first[start : start + step], second[start : start + step], tables[start : start + step]
        at_i, at_j = rows[:, i].long(), rows[:, j].long()
        pairs = torch.arange(len(i))
        one = logits[:, i] - table[pairs, :, at_j]  # (n, pairs, states): of i, without j
        two = logits[:, j] - table.mT[pairs, :, at_i]
        joint = one[:, :, :, None] + two[:, :, None, :] + table
        law = torch.softmax(joint.flatten(2), dim=2).view(joint.shape)
        apart = law.sum(3, keepdim=True) * law.sum(2, keepdim=True)
        found[start : start + step] = (torch.xlogy(law, law) - torch.xlogy(law, apart)).sum((0, 2, 3)) / len(rows)
    return found


def _logits(family: Family, fields: Tensor, tables: Tensor, rows: Tensor) -> Tensor:
    """Return the logits of every site given all others, (n, sites, states)."""
    sites, states = fields.shape
    first, second = torch.from_numpy(family.edges).unbind(1)
    coupled = tables.new_zeros(sites, states, sites, states)
    coupled[first, :, second] = tables
    coupled[second, :, first] = tables.mT
    hot = torch.nn.functional.one_hot(rows, states).to(tables.dtype).flatten(1)
    return fields + (hot @ coupled.flatten(2).flatten(0, 1).T).view(-1, sites, states)
