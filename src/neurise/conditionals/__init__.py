"""Ways to answer which token a site holds given the others: one file per way; ``base`` has the contract."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from neurise import discovery

if TYPE_CHECKING:
    from neurise.conditionals.base import Conditionals, Frame


def build(description: Mapping[str, Any], frame: Frame) -> Conditionals:
    """Make the conditionals that ``Conditionals.description`` describes, with tensors that are still to be loaded."""
    made: Conditionals = discovery.find("neurise.conditionals", description["answers"]).build(description, frame)
    return made
