r"""The pairwise part of autoregressive conditionals, fitted before any network is: sparse multinomial regressions, all at once.

The conditional of site u given the sites that it sees is taken to be

.. math:: \log \mu(x_u = a \mid x) = b_{ua} + \sum_{i\ \mathrm{seen}} A_{ua, i x_i} + \text{const},

and the mean of its negative log-likelihood plus :math:`\lambda \sum_{u,i} \lVert A_{u,i} \rVert` is minimised over all sites
in one matrix product an iteration (FISTA with restarts). The penalty removes whole blocks, which are pairs of sites that tell
nothing about each other; those that are left are then fitted again without it. λ is the one that says most about rows that
were not looked at. The problem is convex, so what is found is found for certain, and a network that starts from there has only
the rest to learn.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional

from neurise.training.batches import Rows, are_counts, into_folds

STRENGTHS = (0.2, 0.1, 0.05, 0.02, 0.005)
r"""Penalties that are tried, the strongest first, in units of the noise :math:`\sqrt{\log(20\,q^2)/n}` of a block's gradient."""
RIDGE = 1e-4
"""A small curvature for directions in which the likelihood has none: two sites that always agree."""
ITERATIONS = 200
LOOK_EVERY = 20
TOLERANCE = 1e-4
"""A fit ends when an iteration that is looked at moves no term by more; each look waits for the device."""
SMALL = 2**17
"""Tokens up to which a GPU would take longer to be told what to do than a CPU to do it."""
FOLDS = 5
FEW_ROWS = 2000
"""Below, λ is chosen by cross-fitting: the rows held back are too few to choose by."""
MOST_NUMBERS = 2**28
"""Rows beyond so many numbers are left out: these many tell enough about pairs."""


class Terms(NamedTuple):
    """The pairwise terms and the fields of every site."""

    pair: Tensor  # (sites, states, sites · states)
    bias: Tensor  # (sites, states)


@dataclass(frozen=True)
class _Data:
    """Rows as the regressions see them. Two states are one number, x − ½, and one outcome, the log-odds of token 1."""

    features: Tensor  # (n, sites · F), centred over the alphabet
    target: Tensor  # (n, sites, O)
    weight: Tensor  # (n,), sums to 1
    count: Tensor  # (n,): how many observations each row stands for
    place: Tensor  # (n,): which of the rows they are, on the CPU

    @property
    def outcomes(self) -> int:
        return self.target.shape[-1]

    def part(self, share: Tensor) -> _Data:
        """Keep a share of every row, (n,) of 0 … 1, and nothing of those whose share is 0."""
        chosen = torch.nonzero(share).flatten()
        weight, count = ((share * whole)[chosen] for whole in (self.weight, self.count))
        place = self.place[chosen.cpu()]
        return _Data(self.features[chosen], self.target[chosen], weight / weight.sum(), count, place)


@dataclass(frozen=True)
class _Fit:
    """Weights (sites · O, sites · F) and biases (sites · O)."""

    weight: Tensor
    bias: Tensor

    def logits(self, data: _Data) -> Tensor:
        return torch.addmm(self.bias, data.features, self.weight.T).view(data.target.shape)

    def score(self, data: _Data) -> float:
        """Mean negative log-likelihood of a row, over all sites."""
        logits = self.logits(data)
        if data.outcomes == 1:
            values = functional.softplus(logits) - logits * data.target
        else:
            values = torch.logsumexp(logits, dim=-1, keepdim=True) - (logits * data.target).sum(-1, keepdim=True)
        return float(data.weight.double() @ values.sum((1, 2)).double())


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
    data, sites = _data(rows, states, device), sees.shape[0]
    inner = data.features.shape[1] // sites
    mask = sees.to(device).repeat_interleave(data.outcomes, 0).repeat_interleave(inner, 1).to(data.features.dtype)
    if held is None:
        generator = torch.Generator().manual_seed(seed)
        scores = _cross_fitted(data, mask, FOLDS if float(data.count.sum()) < FEW_ROWS else 1, generator)
    else:
        other = _data(held, states, device)
        scores = [candidate.score(other) for candidate in _path(data, mask)]
    best = scores.index(min(scores))
    chosen = [data if part is None else data.part(part[data.place].to(data.weight)) for part in parts]
    return [_expanded(next(_path(one, mask, only=best)), sites, states) for one in chosen]


def _cross_fitted(data: _Data, mask: Tensor, rounds: int, generator: torch.Generator) -> list[float]:
    """Score every candidate on a part of the rows by what was fitted on the others, for some of the parts."""
    scores = [0.0] * (2 * len(STRENGTHS))
    for share in itertools.islice(_folds(data.count, generator), rounds):
        held = data.part(share)
        for number, candidate in enumerate(_path(data.part(1 - share), mask)):
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


def _path(data: _Data, mask: Tensor, only: int | None = None) -> Iterator[_Fit]:
    """Yield the fit of every penalty, and after each the one of the pairs it kept without penalty; or one of these alone."""
    sites = data.target.shape[1]
    shape = (sites, data.outcomes, sites, data.features.shape[1] // sites)
    noise = 0.25 if data.outcomes == 1 else 1 - 1 / data.outcomes
    unit = noise * math.sqrt(math.log(20 * sites**2) * float((data.weight.pow(2) / data.count).sum()))
    smoothness = (0.25 if data.outcomes == 1 else 0.5) * _largest(data)
    current = _start(data, mask)
    for number, strength in enumerate(STRENGTHS):
        current = _descend(data, current, mask, shape, strength * unit, smoothness)
        if only is None or only == 2 * number:
            yield current
        if only is not None and only != 2 * number + 1:
            continue
        kept = current.weight.view(shape).pow(2).sum((1, 3), keepdim=True) > 0
        yield _descend(data, current, mask * kept.expand(shape).reshape(mask.shape), shape, 0.0, smoothness)


def _start(data: _Data, mask: Tensor) -> _Fit:
    """Begin with the marginals alone."""
    rate = (data.weight[:, None, None] * data.target).sum(0).clamp(1e-4, 1 - 1e-4)
    bias = torch.logit(rate) if data.outcomes == 1 else rate.log() - rate.log().mean(-1, keepdim=True)
    return _Fit(torch.zeros_like(mask), bias.flatten())


def _largest(data: _Data, rounds: int = 30) -> float:
    """Largest eigenvalue of the second moments of the features and the constant 1, by the power method, and a tenth more."""
    # Of a start that is the same for all sites, a symmetric law could hide the largest for ever.
    vector = torch.randn(data.features.shape[1], generator=torch.Generator().manual_seed(0)).to(data.features)
    constant, size = torch.ones((), device=vector.device, dtype=vector.dtype), 1.0
    for _ in range(rounds):
        seen = data.weight * (data.features @ vector + constant)
        vector, constant = data.features.T @ seen, seen.sum()
        norm = torch.sqrt(vector.pow(2).sum() + constant**2)
        size, vector, constant = float(norm), vector / norm, constant / norm
    return 1.1 * size


def _descend(data: _Data, start: _Fit, mask: Tensor, shape: tuple[int, ...], penalty: float, smoothness: float) -> _Fit:
    """Minimise by accelerated proximal gradient steps, which lose their momentum whenever it leads uphill."""
    step = 1 / (smoothness + RIDGE)
    here, ahead = start, start
    momentum = torch.ones((), device=mask.device)
    for iteration in range(1, ITERATIONS + 1):
        logits = ahead.logits(data)
        law = torch.sigmoid(logits) if data.outcomes == 1 else torch.softmax(logits, dim=-1)
        error = (data.weight[:, None, None] * (law - data.target)).flatten(1)  # (n, sites · O)
        slope = (error.T @ data.features + RIDGE * ahead.weight) * mask
        weight = _shrunk(ahead.weight * mask - step * slope, shape, step * penalty)
        there = _Fit(weight, ahead.bias - step * error.sum(0))
        moved, bias_moved = there.weight - here.weight, there.bias - here.bias
        uphill = ((ahead.weight - there.weight) * moved).sum() > 0
        grown = torch.where(uphill, 1.0, (1 + torch.sqrt(1 + 4 * momentum**2)) / 2)
        share = torch.where(uphill, 0.0, (momentum - 1) / grown)
        here, ahead, momentum = there, _Fit(weight + share * moved, there.bias + share * bias_moved), grown
        if iteration % LOOK_EVERY == 0 and float(moved.abs().amax()) < TOLERANCE:
            break
    return here


def _shrunk(weight: Tensor, shape: tuple[int, ...], by: float) -> Tensor:
    """Shorten the block of every pair of sites by a length, to nothing if it is shorter."""
    if not by:
        return weight
    blocks = weight.view(shape)
    length = blocks.pow(2).sum((1, 3), keepdim=True).sqrt()
    return (blocks * (1 - by / length).clamp(min=0)).view_as(
        weight
    )  # nothing is exactly 0: it says which pairs are kept


def _data(rows: Rows, states: int, device: torch.device) -> _Data:
    most = max(1, MOST_NUMBERS // (rows.x.shape[1] * states))
    place = (
        torch.linspace(0, len(rows) - 1, min(len(rows), most), dtype=torch.float64).round().long()
    )  # evenly over all
    x = rows.x.cpu()[place].to(device)
    weight = torch.ones(len(x), dtype=torch.float64) if rows.weights is None else rows.weights.cpu()[place].double()
    count = (weight if are_counts(weight) else torch.ones_like(weight)).float().to(device)
    weight = (weight / weight.sum()).float().to(device)
    if states == 2:
        return _Data(x.float() - 0.5, x.float()[..., None], weight, count, place)
    target = functional.one_hot(x.long(), states).float()
    return _Data((target - 1 / states).flatten(1), target, weight, count, place)


def _expanded(found: _Fit, sites: int, states: int) -> Terms:
    """Write the terms for one-hot tokens, in the gauge in which they add up to zero over either alphabet."""
    if states > 2:
        return Terms(found.weight.view(sites, states, sites * states), found.bias.view(sites, states))
    half = torch.tensor([-0.5, 0.5], device=found.weight.device)
    pair = half[None, :, None, None] * found.weight[:, None, :, None] * half
    return Terms(pair.flatten(2), found.bias[:, None] * half)
