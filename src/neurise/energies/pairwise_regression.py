r"""The pairwise part of autoregressive conditionals, fitted before any network is.

The conditional of site u given the sites that it sees is taken to be

.. math:: \log \mu(x_u = a \mid x) = b_{ua} + \sum_{i\ \mathrm{seen}} A_{ua, i x_i} + \text{const},

a sparse regression (:mod:`neurise.energies.regressions`) with the penalty :math:`\lambda \sum_{u,i} \lVert A_{u,i} \rVert`. It
removes pairs of sites that tell nothing about each other; those that are left are then fitted again without it. λ is the one
that says most about rows that were not looked at. The problem is convex, so what is found is found for certain, and a network
that starts from there has only the rest to learn.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple, Protocol

import numpy as np
import torch
from torch import Tensor, nn

from neurise import checks
from neurise.energies.regressions import Fit, Sample, descend, marginals, most_bend, sample_of
from neurise.rows import Rows, into_folds

STRENGTHS = (0.2, 0.1, 0.05, 0.02, 0.005)
r"""Penalties that are tried, the strongest first, in units of the noise :math:`\sqrt{\log(20\,q^2)/n}` of a block's gradient."""
SMALL = 2**17
"""Tokens up to which a GPU would take longer to be told what to do than a CPU to do it."""
FOLDS = 5
FEW_ROWS = 2000
"""Below, λ is chosen by cross-fitting: the rows held back are too few to choose by."""


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
) -> list[Terms]:
    """Fit the terms of all sites; ``sees`` (sites, sites) says which sites i the conditional of u looks at.

    There is one fit for each of the parts of the rows, given as booleans (n,) (None: all rows), all with the strength of the
    penalty that is best for all of the rows.
    """
    if rows.x.numel() <= SMALL:
        device = torch.device("cpu")
    sample, sites = sample_of(rows, states, device), sees.shape[0]
    mask = sees.to(sample.features).repeat_interleave(sample.outcomes, 0).repeat_interleave(sample.outcomes, 1)
    if held is None:
        generator = torch.Generator().manual_seed(seed)
        scores = _cross_fitted(sample, mask, FOLDS if float(sample.count.sum()) < FEW_ROWS else 1, generator)
    else:
        other = sample_of(held, states, device)
        scores = [candidate.score(other) for candidate in _path(sample, mask)]
    best = scores.index(min(scores))
    chosen = [sample if part is None else sample.part(part[sample.place].to(sample.weight)) for part in parts]
    return [expanded(next(_path(one, mask, only=best)), sites, states) for one in chosen]


def _cross_fitted(sample: Sample, mask: Tensor, rounds: int, generator: torch.Generator) -> list[float]:
    """Score every candidate on a part of the rows by what was fitted on the others, for some of the parts."""
    scores = [0.0] * (2 * len(STRENGTHS))
    for share in itertools.islice(_folds(sample.count, generator), rounds):
        held = sample.part(share)
        for number, candidate in enumerate(_path(sample.part(1 - share), mask)):
            scores[number] += candidate.score(held)
    return scores


def _folds(count: Tensor, generator: torch.Generator) -> Iterator[Tensor]:
    """Put every observation into one fold, and yield what each fold has of every row, (n,) of 0 … 1."""
    if bool((count == 1).all()):
        folds = min(FOLDS, len(count))
        fold = torch.randperm(len(count), generator=generator).to(count.device) % folds
        yield from ((fold == k).to(count) for k in range(folds))
        return
    for taken in into_folds(count.cpu(), FOLDS, generator=generator):
        if bool(taken.any()) and bool((taken < count.cpu()).any()):
            yield taken.to(count) / count


def _path(sample: Sample, mask: Tensor, only: int | None = None) -> Iterator[Fit]:
    """Yield the fit of every penalty, and after each the one of the pairs it kept without penalty; or one of these alone."""
    sites, shape = sample.shape[0], sample.shape
    noise = 0.25 if sample.outcomes == 1 else 1 - 1 / sample.outcomes
    unit = noise * math.sqrt(math.log(20 * sites**2) * float((sample.weight.pow(2) / sample.count).sum()))
    most, current = most_bend(sample), marginals(sample)
    for number, strength in enumerate(STRENGTHS):
        current = descend(sample, current, mask, penalty=strength * unit, most=most)
        if only is None or only == 2 * number:
            yield current
        if only is not None and only != 2 * number + 1:
            continue
        kept = current.weight.view(shape).pow(2).sum((1, 3), keepdim=True) > 0
        yield descend(sample, current, mask * kept.expand(shape).reshape(mask.shape), penalty=0.0, most=most)


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
def fit_terms(job: Untrained, *, held: Rows | None = None, graph: Tensor | None = None) -> None:
    """Fit the pairwise terms of stacked networks, sums whose first part is a ``PairwiseTerms``, and freeze them.

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
    fit_all = partial(fit, own, held, states, seed=job.seed, device=device)
    found = {"": fit_all((place[:, None] < place) & every, parts=without)}
    if "clean_pair" in terms:
        from neurise.energies import neighbours  # which is built on this file

        near = None if graph is None else neighbours.fit(own, states, every & graph, parts=without, device=device)
        found["clean_"] = near or fit_all(every, parts=without)
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
