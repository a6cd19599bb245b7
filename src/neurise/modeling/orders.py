"""In which orders a model learns the sites, where it is a mixture over several."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from neurise import checks

Order = tuple[int, ...] | None
"""The model's site at each place of an order; None is the order of the model itself."""


def asks_for_orders(orders: Any, sites: int) -> bool:
    """Return whether any order but the model's own is asked for; raise ValueError where the orders are none."""
    if isinstance(orders, str) or not isinstance(orders, Sequence | np.ndarray):
        return checks.count("architecture__orders", orders, checks.MOST_LAYERS) > 1
    if not len(orders):
        raise ValueError("orders is empty; give at least one order, or a number of them")
    found = set[tuple[int, ...]]()
    for number, order in enumerate(orders):
        try:
            found.add(checks.order(order, sites))
        except ValueError as error:
            raise ValueError(f"orders[{number}]: {error}") from error
    if len(found) < len(orders):
        raise ValueError(f"orders has the same order twice among its {len(orders)}: each must differ from the others")
    return True


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
