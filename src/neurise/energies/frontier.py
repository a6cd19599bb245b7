r"""Which sites the conditionals of a chain can depend on, where a graph says which depend on each other directly."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from neurise import checks


def frontier(near: Tensor) -> Tensor:
    r"""Return for every site u those after it that :math:`\mu(x_u \mid x_{>u})` can depend on, (sites, sites) booleans.

    A law that is Markov on a graph has :math:`\mu(x_u \mid x_{-u})` depend on the neighbours N(u) alone. The sites before u
    are summed over, so that u also depends on what they connect it with: on every w > u that a path from u reaches
    whose inner sites are all before u. These sites separate u from all others after it, so that no more are needed.
    They are those that eliminating the sites 0, 1, … one after another connects u with, found by

    .. math:: F(u) = \{w \in N(u) : w > u\} \cup \bigcup_{c:\, \min F(c) = u} F(c) \setminus \{u\} ,

    the union over the sites c before u whose first site in F(c) is u: the others of F(c) come to u through it.
    """
    found = near.cpu().numpy() & np.triu(np.ones(near.shape, dtype=bool), 1)
    for c in range(len(found)):
        after = found[c].nonzero()[0]
        if len(after) > 1:
            found[after[0], after[1:]] = True
    return torch.from_numpy(found).to(near.device)


def adjacency(pairs: Any, order: Any) -> Tensor:
    """Write pairs of the user's sites as booleans (sites, sites), at the places that the sites have in the chain."""
    given = checks.pairs("graph", pairs, len(order))
    place = np.argsort(np.asarray(order))[given]
    near = torch.zeros(len(order), len(order), dtype=torch.bool)
    near[place[:, 0], place[:, 1]] = near[place[:, 1], place[:, 0]] = True
    return near
