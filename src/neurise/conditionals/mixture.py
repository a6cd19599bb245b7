"""Several chains that generate the sites in orders of their own, as one law."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import torch
from torch import Tensor, nn

from neurise import conditionals
from neurise.conditionals.base import Conditionals, Frame
from neurise.fields import Field


@dataclass(frozen=True)
class Ordered:
    """Conditionals, and the order in which their chain takes the sites of the model."""

    conditionals: Conditionals
    order: tuple[int, ...] | None = None
    """The model's site at each place of the chain's order; None: they are the same."""

    def arranged(self, x: Tensor) -> Tensor:
        """Put the sites of rows (n, sites) in the order of the chain."""
        return x if self.order is None else x[:, list(self.order)]

    def restored(self, x: Tensor) -> Tensor:
        """Undo :meth:`arranged`."""
        return x if self.order is None else x[:, torch.tensor(self.order).argsort()]


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
            chains.append(Ordered(conditionals.build(member, in_order(frame, own)), own))
        return cls(chains)


def in_order(frame: Frame, order: tuple[int, ...] | None) -> Frame:
    """Return the frame of a chain that takes the sites in another order."""
    return frame if order is None else replace(frame, constant=frame.constant[list(order)])


def described_chains(field: Field) -> list[Field]:
    """Return the descriptions of every chain in that of the law of them all."""
    return list(field["members"]) if field["answers"].value == "mixture" else [field]


def joined(chains: Sequence[Ordered]) -> Conditionals | Mixture:
    """Return the law of the chains together: the conditionals themselves where there is one chain in the model's order."""
    one = len(chains) == 1 and chains[0].order is None
    return chains[0].conditionals if one else Mixture(chains)


def chains_of(learnt: Conditionals | Mixture) -> list[Ordered]:
    """Undo :func:`joined`."""
    return learnt.chains() if isinstance(learnt, Mixture) else [Ordered(learnt)]
