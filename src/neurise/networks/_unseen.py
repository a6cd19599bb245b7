"""Blindness to what a constant site holds."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from neurise.networks._committee import Committee
from neurise.networks.local_mlp import LocalMLP
from neurise.networks.site_mlp import SiteMLP

TOKEN_AXES = {"token": -2, "pair": -1, "clean_pair": -1, "weights.0": -2}
"""Parameters with an axis that runs over the tokens of all sites. Counted from the end: a committee adds one in front."""


@torch.no_grad()
def ignore_unseen(network: nn.Module, constant: Tensor) -> None:
    r"""Give every token of a constant site the weights of its only one, in place: which it holds is not seen any more.

    .. math:: W_{i,a} \leftarrow W_{i,c_i} \quad \text{for every } a, \text{ where } c_i = \text{constant}_i \ge 0

    A constant site tells nothing of the others. Where its other tokens were never shown, their weights are still the random
    ones of the start, and would make noise of the answers if such a token came.
    """
    kind = network.pattern if isinstance(network, Committee) else network
    if not isinstance(kind, SiteMLP | LocalMLP):
        raise TypeError(f"{type(kind).__name__} is neither a SiteMLP, nor a LocalMLP, nor a committee of them")
    every, only = _places(constant, kind.space.states)
    for name, weight in _parameters(network).items():
        if name in TOKEN_AXES:
            axis = TOKEN_AXES[name]
            weight.index_copy_(axis, every.to(weight.device), weight.index_select(axis, only.to(weight.device)))


def _parameters(network: nn.Module) -> dict[str, Tensor]:
    """Parameters by their names in one network; those of a committee's members are stacked."""
    if isinstance(network, Committee):
        return {name.replace("/", "."): stacked for name, stacked in network.members.items()}
    return dict(network.named_parameters())


def _places(constant: Tensor, states: int) -> tuple[Tensor, Tensor]:
    """Where the tokens of constant sites stand among those of all sites, and for each where its site's only token stands."""
    sites = torch.nonzero(constant >= 0)  # (constant sites, 1)
    every = sites * states + torch.arange(states, device=constant.device)
    only = (sites * states + constant[sites]).expand_as(every)
    return every.flatten(), only.flatten()
