r"""The pairwise part of autoregressive conditionals, fitted before any network is.

The conditional of site u given the sites that it sees is taken to be

.. math:: \log \mu(x_u = a \mid x) = b_{ua} + \sum_{i\ \mathrm{seen}} A_{ua, i x_i} + \text{const},

with few i for each u: those that tell most about it (:mod:`neurise.energies.parents`). How many, and how large their terms may be,
is what says most about rows that were not looked at. A network that starts from there has only the rest to learn.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

import torch
from torch import Tensor, nn

from neurise.deadline import Work
from neurise.energies.parents import Parents, of_rows
from neurise.energies.regressions import Fit
from neurise.rows import Rows, split, without_fold

SMALL = 2**17
"""Tokens up to which a GPU would take longer to be told what to do than a CPU to do it."""
MOST = 64
"""Parents that a site may have; far fewer are enough for all data that were looked at."""
HELD = 0.1
"""Share of the rows that are held back where nobody has held any back."""


class Terms(NamedTuple):
    """The pairwise terms and the fields of every site."""

    pair: Tensor  # (sites, states, sites · states)
    bias: Tensor  # (sites, states)


@torch.no_grad()
def fit(
    rows: Rows,
    held: Rows | None,
    states: int,
    sees: Tensor,
    *,
    seed: int,
    device: torch.device,
    work: Work | None = None,
) -> Terms:
    """Fit the terms of all sites; ``sees`` (sites, sites) says which sites i the conditional of u looks at.

    ``held`` are rows to judge by; without them some of the rows are held back.
    """
    device = torch.device("cpu") if rows.x.numel() <= SMALL else device
    if held is None:
        rows, held = split(rows, HELD, generator=torch.Generator().manual_seed(seed))
    found = of_rows(rows, held, states, sees.to(device), most=MOST, work=work)
    return expanded(dense(found), sees.shape[0], states)


def dense(found: Parents) -> Fit:
    """Write the regressions on parents as those on all sites."""
    sites, _, inner, _ = found.weight.shape
    weight = found.weight.new_zeros(sites, sites + 1, inner, inner)  # the last place is for parents that are not there
    place = torch.where(found.sites >= 0, found.sites, sites)[..., None, None].expand_as(found.weight)
    weight.scatter_(1, place, found.weight)
    lines = weight[:, :-1].permute(0, 3, 1, 2)  # (sites, outcomes, sites, features)
    return Fit(lines.reshape(sites * inner, sites * inner), found.bias[:, 0].flatten())


def expanded(found: Fit, sites: int, states: int) -> Terms:
    """Write the terms for one-hot tokens, in the gauge in which they add up to zero over either alphabet."""
    if states > 2:  # features are centred, so a constant that is added to the weights of a site changes nothing
        pair, bias = found.weight.view(sites, states, sites, states), found.bias.view(sites, states)
        pair = pair - pair.mean(1, keepdim=True)
        return Terms((pair - pair.mean(3, keepdim=True)).flatten(2), bias - bias.mean(1, keepdim=True))
    half = torch.tensor([-0.5, 0.5], device=found.weight.device)
    pair = half[None, :, None, None] * found.weight[:, None, :, None] * half
    return Terms(pair.flatten(2), found.bias[:, None] * half)


class Untrained(Protocol):
    """Networks that are to be trained on rows."""

    objective: Any  # with ``network``, a stack, and ``frame``
    rows: Rows
    held: Rows | None
    seed: int


@torch.no_grad()
def fit_terms(job: Untrained, work: Work, *, graph: Tensor | None = None) -> None:
    """Fit the pairwise terms of stacked networks, sums whose first part is a ``PairwiseTerms``.

    Step u sees the sites after u. The terms of the clean conditionals, if the networks have such, see all other sites, or
    the neighbours in a ``graph``, (sites, sites) booleans. Where rows have folds, network k gets terms that were fitted
    without fold k, and judged by it.
    """
    network, frame = job.objective.network, job.objective.frame
    terms: dict[str, nn.Parameter] = dict(network.pattern.get_submodule("parts.0").named_parameters())
    states, device, varies = frame.noise.space.states, frame.constant.device, (frame.constant < 0).cpu()
    place = torch.arange(len(varies))
    every = (place[:, None] != place) & varies & varies[:, None]
    sights = {"": (place[:, None] < place) & every}
    if "clean_pair" in terms:
        sights["clean_"] = every
    work = work.part(1.0, what="pairwise terms", unit="fits", total=len(sights) * network.size)
    for member in range(network.size):
        rows, held = without_fold(job.rows, job.held, member)
        found = dict[str, Terms]()
        for number, (kind, sees) in enumerate(sights.items(), member * len(sights)):
            own = work.part(1 / (len(sights) * network.size - number))
            if kind and graph is not None:
                from neurise.energies import neighbours  # which is built on this file

                found[kind] = neighbours.fit(rows, states, every & graph, device=device, work=own)
            else:
                found[kind] = fit(rows, held, states, sees, seed=job.seed, device=device, work=own)
            work.left(done=1)
        if "clean_" in found:  # step 0 is both: it sees everything
            for chain, clean in zip(found[""], found["clean_"], strict=True):
                chain[0] = clean[0]
        for kind, fitted in found.items():
            for name, values in fitted._asdict().items():
                target = terms[f"{kind}{name}"][member]
                target.copy_(values.to(target))
    if work.shown is not None:
        work.shown.progress.close()


def freeze_terms(network: Any) -> None:
    """Keep the pairwise terms of stacked networks as they are while the rest is trained."""
    network.pattern.get_submodule("parts.0").requires_grad_(False)
