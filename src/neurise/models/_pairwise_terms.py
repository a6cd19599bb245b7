"""The pairwise terms of a network: fitted before it is trained, and left as they are."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from neurise.conditionals import NetworkConditionals
from neurise.networks._committee import Committee
from neurise.networks.site_mlp import SiteMLP
from neurise.training import neighbours, pairwise
from neurise.training.batches import Rows


@torch.no_grad()
def fix_pairwise(
    conditionals: NetworkConditionals,
    rows: Rows,
    held: Rows | None,
    fold: Tensor | None,
    seed: int,
    graph: Tensor | None = None,
) -> None:
    """Fit the pairwise terms of autoregressive conditionals, and freeze them.

    Step u sees the sites after u. The terms of the clean conditionals, if the network has such, see all other sites, or its
    neighbours in a ``graph``, (sites, sites) booleans. Of a committee each member gets terms that were fitted without its fold.
    """
    network, terms = conditionals.network, _terms(conditionals.network)
    place, varies = torch.arange(len(conditionals.constant)), (conditionals.constant < 0).cpu()
    every = (place[:, None] != place) & varies & varies[:, None]
    fit = partial(pairwise.fit, rows, held, conditionals.noise.space.states, seed=seed, device=conditionals.device)
    members = range(network.size if isinstance(network, Committee) else 1)
    without = [None if fold is None else fold != member for member in members]
    found = {"pair": fit((place[:, None] < place) & every, parts=without)}
    if "clean_pair" in terms:
        states, device = conditionals.noise.space.states, conditionals.device
        near = None if graph is None else neighbours.fit(rows, states, every & graph, parts=without, device=device)
        found["clean_pair"] = near or fit(every, parts=without)
    for member in members:
        if "clean_pair" in found:  # step 0 is both: it sees everything
            for own, clean in zip(found["pair"][member], found["clean_pair"][member], strict=True):
                own[0] = clean[0]
        for name, fitted in found.items():
            for parameter, values in ((terms[name], fitted[member].pair), (terms[f"{name}_bias"], fitted[member].bias)):
                target = parameter[member] if isinstance(network, Committee) else parameter
                target.copy_(values.to(target))
    for parameter in terms.values():
        parameter.requires_grad_(False)


def adjacency(pairs: Any, order: Sequence[int]) -> Tensor:
    """Write pairs of the user's sites as booleans (sites, sites), at the places that the sites have in the chain."""
    given, sites = np.asarray(pairs), len(order)
    if given.ndim != 2 or given.shape[1] != 2 or given.dtype.kind not in "iu":
        raise ValueError(
            f"graph must be pairs of sites, (m, 2) whole numbers, got an array of shape {given.shape} and type {given.dtype}"
        )
    if given.min(initial=0) < 0 or given.max(initial=0) >= sites:
        wrong = given[((given < 0) | (given >= sites)).any(1)][0].tolist()
        raise ValueError(f"graph has the pair {wrong}, but the sites are 0 … {sites - 1}")
    place = np.argsort(np.asarray(order))[given]
    near = torch.zeros(sites, sites, dtype=torch.bool)
    near[place[:, 0], place[:, 1]] = near[place[:, 1], place[:, 0]] = True
    return near


def _terms(network: nn.Module) -> dict[str, Tensor]:
    """Name the parameters of pairwise terms; a committee has them stacked."""
    if isinstance(network, Committee):
        return {name: network.members[name] for name in _terms(network.pattern)}
    return dict(network.fixed()) if isinstance(network, SiteMLP) else {}
