"""Networks: one file per network; :mod:`neurise.networks.base` has the contracts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from neurise import discovery
from neurise.fields import Field

if TYPE_CHECKING:
    from neurise.space import Space


def build(description: Mapping[str, Any], space: Space, num_steps: int, classes: int) -> Any:
    """Make the network that ``Network.description`` describes, with weights that are still to be given."""
    from neurise.networks.pairwise_terms import Sum

    if "sum" in description:
        return Sum([build(part, space, num_steps, classes) for part in description["sum"]])
    field = Field(dict(description), "learnt.conditionals.network")
    for name in ("width", "depth"):
        field[name].whole()
    options = {name: value for name, value in description.items() if name != "network"}
    return discovery.find("neurise.networks", description["network"])(space, num_steps, classes=classes, **options)
