r"""The data's own conditionals beside a chain that looks one way, and how many sweeps with them do good.

A network that answers for a whole row knows :math:`\mu(x_u \mid x_{>u})`; sweeps draw from :math:`\mu_0(x_u \mid x_{-u})`.
These are learnt apart, by pseudo-likelihood. On wide data they are regressions on all other sites in rows that were noised a
little (:mod:`neurise.energies.noisy_regressions`), elsewhere, or where the neighbours of the sites are known, a linear ``sparse``
network that looks at both sides of every site. Both are solved for and not trained, so that they take seconds; perceptrons on
top of them have not made sweeps better.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Generator, Tensor

from neurise.conditionals.base import Conditionals, Frame
from neurise.conditionals.network_conditionals import NetworkConditionals
from neurise.conditionals.row_conditionals import RowConditionals
from neurise.deadline import Work
from neurise.energies import noisy_regressions
from neurise.energies.regressions import Sample, sample_of
from neurise.modeling.kinds import WIDE
from neurise.networks.pairwise_terms import PairwiseTerms
from neurise.networks.sparse import Sparse
from neurise.rows import Rows, without_fold
from neurise.sampling.corrector import correct
from neurise.sampling.reverse import sample

CLEANING = 0.2
"""The share of a limited time that is kept for the data's own conditionals."""
NUMBERS = (0, 1, 2, 4, 8, 16, 32)
"""How many sweeps are tried."""
DRAWS = 2000
"""Rows that are drawn to see what sweeps do to them."""
CHANCE = (4.0, 1.0)
"""Squares of differences, in squares of their standard errors, below which the energy and the moments are as they should be."""
HURT, TIE = 1.1, 0.05
"""Neither may be worse by this factor than without sweeps; numbers whose scores differ by less than the tie are equal."""
COLUMNS = 1024
"""Columns of the matrix of moments that are computed at once."""


@torch.no_grad()
def learn(job: Any, near: Tensor | None, work: Work) -> Conditionals:
    """Learn the data's own conditionals from the rows of a job; ``near`` are neighbours that are known, (sites, sites)."""
    frame: Frame = job.objective.frame
    space, device = frame.noise.space, frame.constant.device
    if near is None and is_wide(job, near):
        return _of_noised_rows(job, work)
    most = {} if near is None else {"parents": max(1, int(near.sum(1).max()))}
    network = Sparse(space, frame.noise.num_steps, width=0, classes=frame.classes, sides="both", **most)
    network.to(device).requires_grad_(False).reset(Generator().manual_seed(job.seed))
    network.take(network.begin(*without_fold(job.rows, job.held, 0), frame.constant < 0, work, near))
    return RowConditionals(network, frame)


def is_wide(job: Any, near: Tensor | None) -> bool:
    """Whether so many sites vary that errors of single conditionals add up, and regressions on all others or on neighbours that are
    known are a matter of seconds.
    """
    frame: Frame = job.objective.frame
    space, device, rows = frame.noise.space, frame.constant.device, job.rows
    if int((frame.constant < 0).sum()) < WIDE or rows.missing is not None or rows.y is not None:
        return False
    return near is not None or noisy_regressions.serves(rows, space, device)


def _of_noised_rows(job: Any, work: Work) -> NetworkConditionals:
    frame: Frame = job.objective.frame
    rows, varies = without_fold(job.rows, job.held, 0)[0], frame.constant < 0
    found = noisy_regressions.fit(rows, frame.noise.space, varies, seed=job.seed, work=work)
    terms = PairwiseTerms(frame.noise.space, frame.noise.num_steps).to(varies.device).requires_grad_(False)
    terms.pair.copy_(found.pair)
    terms.bias.copy_(found.bias)
    return NetworkConditionals(terms, frame, hide_noised=False)  # at any time it sees all other sites


@torch.no_grad()
def best_sweeps(asked: Conditionals, part: Conditionals, held: Rows | None, *, seed: int, work: Work) -> int:
    r"""Return how many sweeps bring what the chain draws nearest to rows that were held back; 0 where there are none.

    Two things are compared: the mean of the energy, here minus the log-pseudo-likelihood
    :math:`\sum_u \log \mu_0(x_u \mid x_{-u})`, and the second moments of the pairs of sites that the part joins, each by the
    square of the difference over the square of its standard error (of the pairs the mean). See :func:`fewest`.
    """
    if held is not None and held.missing is not None:  # what is missing has no energy
        held = replace(held.take(~held.missing.any(1)), missing=None)
    if held is None or not len(held) or not work.left():
        return 0
    generator, states = Generator(asked.device).manual_seed(seed), asked.noise.space.states
    drawn = held.spread(DRAWS, generator=Generator(held.device).manual_seed(seed))
    y = None if drawn.y is None else drawn.y.to(asked.device)
    truth = sample_of(held, states, asked.device)
    labels = None if held.y is None else held.y[truth.place.to(held.y.device)].to(asked.device)
    known = _energies(part, held.x[truth.place.to(held.x.device)].to(asked.device), labels)
    x, energies, pairs, before = torch.empty(0), list[float](), list[float](), 0
    for number in NUMBERS:
        if not work.left():
            break
        x = (
            correct(asked, x, y, sweeps=number - before, generator=generator)
            if number
            else sample(asked, DRAWS, y, generator=generator).to(asked.device)
        )
        own, before = sample_of(Rows(x.to(torch.uint8)), states, asked.device), number
        energies.append(_excess(_energies(part, x, y)[:, None], known[:, None], own, truth))
        pairs.append(_pairs_excess(own, truth, part.looked_at()))
    return NUMBERS[fewest(energies, pairs)] if energies else 0


def fewest(energies: Sequence[float], pairs: Sequence[float]) -> int:
    r"""Return which entry is best: the least :math:`\log \max(e, 4) + \log \max(m, 1)`, e and m in squared standard errors.

    What is within chance counts as right. An entry where either is worse than in the first one, by more than a tenth, hurts
    and is left out. Of those that are as good as the best, within 0.05, it is the first.
    """
    scores = []
    for both in zip(energies, pairs, strict=True):
        first = (energies[0], pairs[0])
        floored = [max(value, chance) for value, chance in zip(both, CHANCE, strict=True)]
        limits = [HURT * max(value, chance) for value, chance in zip(first, CHANCE, strict=True)]
        hurts = any(value > limit for value, limit in zip(floored, limits, strict=True))
        scores.append(math.inf if hurts else sum(map(math.log, floored)))
    best = min(scores)
    return next(place for place, score in enumerate(scores) if score <= best + TIE)


def _energies(part: Conditionals, x: Tensor, y: Tensor | None) -> Tensor:
    """Return minus the log-pseudo-likelihood of rows (n, sites) over the sites that vary, (n,)."""
    found = []
    for rows in part.blocks(len(x)):
        answers = part.log_conditionals(x[rows], None if y is None else y[rows])
        own = answers.gather(-1, x[rows].long()[..., None]).squeeze(-1)
        found.append(-own.masked_fill(part.ignored, 0.0).sum(1))
    return torch.cat(found)


def _pairs_excess(own: Sample, truth: Sample, joined: Tensor) -> float:
    """Return the mean of :func:`_excess` over the products of features of sites that are joined, (sites, sites) booleans."""
    outcomes, total, count = own.outcomes, 0.0, 0
    wide = joined.repeat_interleave(outcomes, 1)
    step = max(1, COLUMNS // outcomes)
    for start in range(0, len(joined), step):
        mask = wide[start : start + step].repeat_interleave(outcomes, 0)
        columns = slice(start * outcomes, (start + step) * outcomes)
        means, errors = zip(*(_products(part, columns) for part in (own, truth)), strict=True)
        error = (errors[0] + errors[1])[mask]
        squares = (means[0] - means[1])[mask].square()
        told = error > 1e-9
        total += float((squares[told] / error[told]).double().sum())
        count += int(told.sum())
    return total / count if count else CHANCE[1]


def _products(part: Sample, columns: slice) -> tuple[Tensor, Tensor]:
    """Return the means of products of features and the squares of their standard errors, (columns, all columns)."""
    own, every = part.features[:, columns], part.features
    weighted = part.weight[:, None] * own
    mean = weighted.T @ every
    spread = (weighted * own).T @ every.square() - mean.square()
    return mean, spread.clamp(min=0) * _share(part)


def _excess(first: Tensor, second: Tensor, own: Sample, truth: Sample) -> float:
    """Return the square of the difference of two means over the square of its standard error; values are (n, 1)."""
    means, errors = [], []
    for given, part in ((first, own), (second, truth)):
        values = given.to(part.weight)
        mean = part.weight @ values
        means.append(mean)
        errors.append(part.weight @ (values - mean).square() * _share(part))
    return float((means[0] - means[1]).square() / (errors[0] + errors[1]).clamp(min=1e-12))


def _share(part: Sample) -> Tensor:
    """Return one over the number of observations that weighted rows are worth."""
    return (part.weight.square() / part.count).sum()
