"""Several chains that generate the sites in orders of their own, as one law."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

from torch import nn

from neurise import conditionals
from neurise.conditionals.base import Frame, Ordered
from neurise.fields import Field


class Mixture(nn.Module):
    r"""Equal mixture of joint laws, :math:`p(x) = \frac1K \sum_k p_k(x_{\pi_k(1)}, \dots, x_{\pi_k(q)})`.

    Conditionals of different orders look at different sites, so that they have no mean that were a law; their joint laws
    have one. A mixture is no :class:`~neurise.conditionals.base.Conditionals`: the conditional of a site is that of each chain,
    weighted by what the chain thinks of the sites that are known, which it cannot say of any but the first sites of its order.
    """

    def __init__(self, chains: Sequence[Ordered]) -> None:
        super().__init__()
        self.members = nn.ModuleList([chain.conditionals for chain in chains])
        self.orders = [chain.order for chain in chains]

    def chains(self) -> list[Ordered]:
        """Return the conditionals of each chain with its order."""
        return [Ordered(member, order) for member, order in zip(self.members, self.orders, strict=True)]  # type: ignore[arg-type]

    def lay_out(self) -> Self:
        """Lay every member out."""
        for chain in self.chains():
            chain.conditionals.lay_out()
        return self

    def description(self) -> dict[str, Any]:
        """Describe every member, its weight and its order."""
        return {
            "answers": "mixture",
            "weights": [1 / len(self.members)] * len(self.members),
            "members": [chain.conditionals.description() for chain in self.chains()],
            "orders": [None if order is None else list(order) for order in self.orders],
        }

    @classmethod
    def build(cls, description: dict[str, Any], frame: Frame) -> Mixture:
        """Make the members again, each for the sites in its own order."""
        field, sites, chains = Field(description, "learnt.conditionals"), frame.noise.space.sites, []
        orders = list(field["orders"])
        if len(orders) != len(list(field["members"])) or not orders:
            raise field["orders"].wrong("one order per member")
        for member, order in zip(description["members"], orders, strict=True):
            own = None if order.value is None else tuple(order.wholes(sites, 0, sites - 1))
            if own is not None and len(set(own)) < sites:
                raise order.wrong(f"an order that names each of the sites 0 … {sites - 1} once, or null")
            chains.append(Ordered(conditionals.build(member, frame if own is None else frame.in_order(own)), own))
        return cls(chains)


def described_chains(field: Field) -> list[Field]:
    """Return the descriptions of every chain in that of the law of them all."""
    return list(field["members"]) if field["answers"].value == "mixture" else [field]
