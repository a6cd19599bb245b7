"""Fit the pairwise terms of networks before they are trained, for the steps of an autoregressive chain."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from neurise import checks
from neurise.conditionals.base import Frame
from neurise.energies import neighbours, pairwise_regression
from neurise.networks.parts.stack import Stack
from neurise.rows import Rows


@torch.no_grad()
def fit_terms(
    network: Stack, frame: Frame, rows: Rows, held: Rows | None, *, seed: int, graph: Tensor | None = None
) -> None:
    """Fit the pairwise terms of stacked networks, sums whose first part is a ``PairwiseTerms``, and freeze them.

    Step u sees the sites after u. The terms of the clean conditionals, if the networks have such, see all other sites, or
    the neighbours in a ``graph``, (sites, sites) booleans. Where rows have folds, network k gets terms that were fitted
    without fold k.
    """
    terms: dict[str, nn.Parameter] = dict(network.pattern.get_submodule("parts.0").named_parameters())
    states, device, varies = frame.noise.space.states, frame.constant.device, frame.varies.cpu()
    place = torch.arange(len(varies))
    every = (place[:, None] != place) & varies & varies[:, None]
    without = [None if rows.fold is None else rows.fold != member for member in range(network.size)]
    own = replace(rows, fold=None)
    fit = partial(pairwise_regression.fit, own, held, states, seed=seed, device=device)
    found = {"": fit((place[:, None] < place) & every, parts=without)}
    if "clean_pair" in terms:
        near = None if graph is None else neighbours.fit(own, states, every & graph, parts=without, device=device)
        found["clean_"] = near or fit(every, parts=without)
    for member in range(network.size):
        if "clean_" in found:  # step 0 is both: it sees everything
            for chain, clean in zip(found[""][member], found["clean_"][member], strict=True):
                chain[0] = clean[0]
        for kind, fitted in found.items():
            for name, values in fitted[member]._asdict().items():
                target = terms[f"{kind}{name}"][member]
                target.copy_(values.to(target))
    for parameter in terms.values():
        parameter.requires_grad_(False)


def adjacency(pairs: Any, order: Sequence[int]) -> Tensor:
    """Write pairs of the user's sites as booleans (sites, sites), at the places that the sites have in the chain."""
    given = checks.pairs("graph", pairs, len(order))
    place = np.argsort(np.asarray(order))[given]
    near = torch.zeros(len(order), len(order), dtype=torch.bool)
    near[place[:, 0], place[:, 1]] = near[place[:, 1], place[:, 0]] = True
    return near
