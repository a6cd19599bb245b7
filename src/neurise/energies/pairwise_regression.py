r"""The pairwise part of autoregressive conditionals, fitted before any network is.

The conditional of site u given the sites that it sees is taken to be

.. math:: \log \mu(x_u = a \mid x) = b_{ua} + \sum_{i\ \mathrm{seen}} A_{ua, i x_i} + \text{const},

a sparse regression (:mod:`neurise.energies.regressions`) with the penalty :math:`\lambda \sum_{u,i} \lVert A_{u,i} \rVert`. It
removes pairs of sites that tell nothing about each other; those that are left are then fitted again without it. λ is the one
that says most about rows that were not looked at. The problem is convex, so what is found is found for certain, and a network
that starts from there has only the rest to learn. Where that takes long, the sites that tell most about each site are looked
for instead (:mod:`neurise.energies.parent_terms`), which says as much about other rows in a fraction of the time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple, Protocol

import torch
from torch import Tensor, nn

from neurise.deadline import Work
from neurise.energies.regressions import FOLDS, STRENGTHS, Fit, best_candidate, fitted_parts, sample_of
from neurise.rows import Rows

SMALL = 2**17
"""Tokens up to which a GPU would take longer to be told what to do than a CPU to do it."""

LARGE = 2e7
"""Rows × columns² from which on few sites are looked for: the penalised fit of all pairs is no longer a matter of seconds."""


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
    parts: Sequence[Tensor | None] = (None,),
    seed: int,
    device: torch.device,
    work: Work | None = None,
) -> list[Terms]:
    """Fit the terms of all sites; ``sees`` (sites, sites) says which sites i the conditional of u looks at.

    There is one fit for each of the parts of the rows, given as booleans (n,) (None: all rows), all with the strength of the
    penalty that is best for all of the rows. Of a time that is limited, half goes into finding that strength.
    """
    work = work or Work()
    if len(rows) * (sees.shape[0] * (1 if states == 2 else states)) ** 2 > LARGE:
        from neurise.energies import parent_terms  # which is built on this file

        return parent_terms.fit(rows, held, states, sees, parts=parts, seed=seed, device=device, work=work)
    if rows.x.numel() <= SMALL:
        device = torch.device("cpu")
    sample, sites = sample_of(rows, states, device), sees.shape[0]
    mask = sees.to(sample.features).repeat_interleave(sample.outcomes, 0).repeat_interleave(sample.outcomes, 1)
    aside = None if held is None else sample_of(held, states, device)
    best = best_candidate(sample, mask, aside, seed, work.part(0.5))
    found = fitted_parts(sample, mask, best, parts, work)
    return [expanded(fit, sites, states) for fit in found]


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
    seed: int


@torch.no_grad()
def fit_terms(job: Untrained, work: Work, *, held: Rows | None = None, graph: Tensor | None = None) -> None:
    """Fit the pairwise terms of stacked networks, sums whose first part is a ``PairwiseTerms``.

    Step u sees the sites after u. The terms of the clean conditionals, if the networks have such, see all other sites, or
    the neighbours in a ``graph``, (sites, sites) booleans. Where rows have folds, network k gets terms that were fitted
    without fold k.
    """
    network, frame, rows = job.objective.network, job.objective.frame, job.rows
    terms: dict[str, nn.Parameter] = dict(network.pattern.get_submodule("parts.0").named_parameters())
    states, device, varies = frame.noise.space.states, frame.constant.device, (frame.constant < 0).cpu()
    place = torch.arange(len(varies))
    every = (place[:, None] != place) & varies & varies[:, None]
    without = [None if rows.fold is None else rows.fold != member for member in range(network.size)]
    own = replace(rows, fold=None)
    kinds = 1 + ("clean_pair" in terms)
    total = kinds * (2 * len(STRENGTHS) * FOLDS + (len(STRENGTHS) + 1) * network.size)
    work = work.part(1.0, what="pairwise terms", unit="regressions", total=total)
    fit_all = partial(fit, own, held, states, parts=without, seed=job.seed, device=device)
    found = {"": fit_all((place[:, None] < place) & every, work=work.part(1 / kinds))}
    if "clean_pair" in terms:
        from neurise.energies import neighbours  # which is built on this file

        near = None
        if graph is not None:
            near = neighbours.fit(own, states, every & graph, parts=without, device=device, work=work)
        found["clean_"] = near or fit_all(every, work=work)
    if work.shown is not None:
        work.shown.progress.close()
    for member in range(network.size):
        if "clean_" in found:  # step 0 is both: it sees everything
            for chain, clean in zip(found[""][member], found["clean_"][member], strict=True):
                chain[0] = clean[0]
        for kind, fitted in found.items():
            for name, values in fitted[member]._asdict().items():
                target = terms[f"{kind}{name}"][member]
                target.copy_(values.to(target))


def freeze_terms(network: Any) -> None:
    """Keep the pairwise terms of stacked networks as they are while the rest is trained."""
    network.pattern.get_submodule("parts.0").requires_grad_(False)
