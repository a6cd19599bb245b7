"""In which orders a model learns the sites, where it is a mixture over several."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

Order = tuple[int, ...] | None
"""The model's site at each place of an order; None is the order of the model itself."""


def orders_of(orders: Any, own: Sequence[int], seed: int) -> list[Order]:
    """Return the orders to learn, in the numbers of the model's sites; ``own`` is the user's site at each of these.

    A number K asks for the model's own order and K − 1 random ones by the seed.
    """
    places = {site: place for place, site in enumerate(own)}
    if isinstance(orders, Sequence | np.ndarray):
        found = [tuple(places[int(site)] for site in order) for order in orders]
        return [None if order == tuple(range(len(own))) else order for order in found]
    generator = torch.Generator().manual_seed(seed)
    others = [torch.randperm(len(own), generator=generator).tolist() for _ in range(int(orders) - 1)]
    return [None, *map(tuple, others)]
