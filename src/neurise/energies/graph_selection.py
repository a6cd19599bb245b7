r"""Which pairs of sites interact: growth and decimation, judged by the likelihood.

**Growth.** The likelihood on the pairs that are there, S, is maximised. In draws of that law every absent pair k has a mean and a
covariance with S. The difference g of its mean from that of the data, beyond what S explains of it, would add

.. math:: \tfrac12\, g^\top \bigl[\bigl(\tfrac1N + \tfrac1M\bigr) (F_{kk} - F_{kS} F_{SS}^{-1} F_{Sk})\bigr]^{-1} g

nats, M being the number of draws. Pairs that would add more than they cost join.

**Decimation.** A pair whose loss would lower the likelihood by less than it costs, τ, is dropped, the weakest half of such pairs
at a time since one may stand in for another, and the likelihood is maximised again. What a loss would cost is estimated by

.. math:: \max\bigl\{\tfrac12\, J_{ij}^\top\, \Sigma_{ij}^{-1} J_{ij},\; N\, I(x_i; x_j \mid \text{the rest})\bigr\}, \qquad
   \Sigma = (N F + c)^{-1}.

The first is the second order of the likelihood, which says nothing where couplings are so strong that they exclude states. The
second (:mod:`neurise.energies.pair_information`) is no more than the whole: no law without the pair is nearer.
:math:`\tau = \tfrac12 d \log N` for d couplings is the Bayesian criterion; lower ones keep what pays in prediction.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
import torch
from torch import Tensor

from neurise.deadline import Work
from neurise.energies import maximum_likelihood, pair_information
from neurise.energies.exact_laws import exact_laws
from neurise.energies.family import Family
from neurise.energies.maximum_likelihood import Aim, Fit, Prior
from neurise.energies.solved import ExactLaws

LEAST_DRAWS, MOST_DRAWS = 20_000, 200_000
"""Draws that absent pairs are judged by."""
LEAST_RISE = 0.1
"""Nats of all rows by which a round of growth must be better to count."""
WORTHLESS = 0.2
"""Pairs that are worth so small a share of their cost are dropped all at once."""
EXPLAINED, FEW_PAIRS = 0.8, 1024
"""The share of the variance of a pair that those which are there explain at most, where there are more pairs than so many."""
AT_ONCE = 256
"""Absent pairs that are judged at a time."""


class Estimate(Protocol):
    """Parameters that have errors."""

    @property
    def family(self) -> Family:
        """Whose parameters they are."""

    @property
    def theta(self) -> Tensor:
        """The parameters, (size,)."""

    def covariance(self) -> Tensor:
        """Return the covariance of the estimate, (size, size)."""


@dataclass(frozen=True)
class Rule:
    """How graphs are judged: nats that a coupling and a pair must be worth, and the prior of the couplings."""

    each: float
    pair: float
    prior: Prior
    seed: int = 0
    work: Work = field(default_factory=Work)

    def fit(self, laws: ExactLaws, aim: Aim, start: Tensor | None = None) -> Fit:
        """Maximise the likelihood from given parameters on."""
        return maximum_likelihood.fit(laws, aim, prior=self.prior, start=start, seed=self.seed, work=self.work)

    def price(self, family: Family) -> np.ndarray:
        """Return the nats that each pair must be worth, (pairs,)."""
        return np.asarray(self.each * family.numbers + self.pair)

    def height(self, found: Fit) -> float:
        """Return nats of all rows less what the pairs cost."""
        return found.count * found.value - float(self.price(found.family).sum())


def decimate(found: Fit, aim: Aim, rule: Rule, needed: set[tuple[int, int]] | None = None) -> Fit:
    """Drop pairs that are worth less than they cost, until there are none.

    An estimate says which may go, and the likelihood has the last word: where too much was lost, half as many go, and a pair
    that may not go alone stays for good; it joins ``needed``.
    """
    needed, most = set() if needed is None else needed, len(found.family.edges)
    while True:
        costs = worth(found, aim.shares, rule.seed) / rule.price(found.family)
        free = np.array([tuple(pair) not in needed for pair in found.family.edges.tolist()], dtype=bool)
        weak = np.flatnonzero((costs < 1) & free)
        order = weak[np.argsort(costs[weak], kind="stable")]
        if not len(weak) or not rule.work.left():
            return found
        gone = order[: min(most, max(-(-len(weak) // 2), int((costs[order] < WORTHLESS).sum())))]
        kept = np.ones(len(found.family.edges), dtype=bool)
        kept[gone] = False
        family, places = found.family.restricted(kept)
        laws = exact_laws(family, _device_of(found.laws))
        # An order of elimination is looked for anew: now and then that for fewer pairs is wider.
        fewer = None if laws is None else rule.fit(laws, aim, found.theta[places])
        if fewer is not None and rule.height(fewer) >= rule.height(found):
            found, most = fewer, 2 * len(gone)
        elif len(gone) == 1:
            needed.add(tuple(found.family.edges[gone[0]].tolist()))
        else:
            most = len(gone) // 2


def grow(found: Fit, aim: Aim, rule: Rule) -> Fit:
    """Add pairs and drop pairs in turn while the criterion rises."""
    needed = set[tuple[int, int]]()
    while rule.work.left():
        laws = wider(found, aim, rule)
        if laws is None:
            break
        more = decimate(rule.fit(laws, aim, found.family.carried(found.theta, laws.family)), aim, rule, needed)
        if rule.height(more) <= rule.height(found) + LEAST_RISE:
            break
        found = more
    return found


def wider(found: Fit, aim: Aim, rule: Rule) -> ExactLaws | None:
    """Return the laws with absent pairs that would be worth their cost; None where there are none, or all are too wide.

    A site is in one new pair at most: what one pair explains need not be explained by its neighbours too.
    """
    family = found.family
    absent = promising(found, absent_from(family), aim, rule)
    gains = additions(found, absent, aim, seed=rule.seed) / rule.price(absent)
    taken, joined = set[int](), list[list[int]]()
    for place in np.argsort(-gains, kind="stable").tolist():
        pair = absent.edges[place].tolist()
        if gains[place] <= 1:
            break
        if taken.isdisjoint(pair):
            joined.append(pair)
            taken.update(pair)
    while joined:  # half as many where so many are too wide
        edges = np.concatenate([family.edges, joined])
        laws = exact_laws(
            Family(family.space, edges[np.lexsort(edges.T[::-1])], family.classes), _device_of(found.laws)
        )
        if laws is not None:
            return laws
        joined = joined[: len(joined) // 2]
    return None


def promising(found: Fit, absent: Family, aim: Aim, rule: Rule) -> Family:
    r"""Leave out absent pairs that would hardly pay even if the pairs that are there explained most of what varies in them.

    A pair adds about :math:`\tfrac12 g^2 / (v (1 - R^2))`, with the difference g of its mean and the variance v of that, of which
    the pairs that are there explain the share R². Here all R² are ``EXPLAINED``; a few pairs are looked at one by one anyway.
    """
    if len(absent.edges) <= FEW_PAIRS:
        return absent
    fields, draws, rng = absent.num_fields, LEAST_DRAWS, np.random.default_rng(rule.seed)
    samples = [
        one.draw(max(2, round(draws * share)), rng)
        for share, one in zip(aim.shares.tolist(), found.solved, strict=True)
    ]
    mean, square = absent.mean_of(samples, aim.shares)[fields:], absent.mean_of(samples, aim.shares, power=2)[fields:]
    gap, varies = absent.mean(aim.rows)[fields:] - mean, (square - mean**2).clamp(min=maximum_likelihood.SMOOTH)
    each = 0.5 * gap**2 / (varies * (1 / found.count + 1 / draws))
    gains = each.new_zeros(len(absent.edges)).index_add_(0, absent.pairs[:, 2], each).numpy()
    return absent.restricted(gains > (1 - EXPLAINED) * rule.price(absent))[0]


def absent_from(family: Family) -> Family:
    """Return the family of the pairs that are not there."""
    there = np.zeros((family.space.sites, family.space.sites), dtype=bool)
    there[tuple(family.edges.T)] = True
    whole = Family.dense(family.space, family.classes)
    return whole.restricted(~there[tuple(whole.edges.T)])[0]


def additions(found: Fit, absent: Family, aim: Aim, *, seed: int = 0) -> np.ndarray:
    """Return what each absent pair would add to the log-likelihood of all rows, in nats, (pairs,)."""
    family, smooth, rng = found.family, maximum_likelihood.SMOOTH, np.random.default_rng(seed)
    draws = int(min(MOST_DRAWS, max(LEAST_DRAWS, 2 * found.count)))
    samples = [
        one.draw(max(2, round(draws * s)), rng) for s, one in zip(aim.shares.tolist(), found.solved, strict=True)
    ]
    noise, fields = 1 / found.count + 1 / draws, family.num_fields

    def missed(one: Family) -> Tensor:
        return one.mean(aim.rows) - one.mean_of(samples, aim.shares)

    inside = family.covariance(samples, aim.shares) + smooth * torch.eye(family.size, dtype=torch.float64)
    factor, known, gap = torch.linalg.lu_factor(inside), missed(family), missed(absent)[fields:]
    gains, ends = np.empty(len(absent.edges)), np.cumsum(absent.numbers)
    for start in range(0, len(gains), AT_ONCE):
        part = Family(family.space, absent.edges[start : start + AT_ONCE], family.classes)
        across = family.covariance(samples, aim.shares, part)[:, fields:]
        # What the draws miss of the moments that are known explains part of what they miss of the others.
        slope = torch.linalg.lu_solve(*factor, across)
        left = part.covariance(samples, aim.shares)[fields:, fields:] - slope.T @ across
        left = (left + smooth * torch.eye(len(left), dtype=torch.float64)) * noise
        first = int(ends[start] - absent.numbers[start])
        rest = gap[first : first + len(left)] - slope.T @ known
        gains[start : start + AT_ONCE] = [
            0.5 * float(rest[own] @ torch.linalg.solve(left[own, own], rest[own])) for own in _places(part.numbers)
        ]
    return gains


def wald(found: Estimate) -> np.ndarray:
    """Return what the loss of each pair would cost, in nats of all rows, (pairs,)."""
    fields = found.family.num_fields
    covariance, theta = found.covariance()[fields:, fields:], found.theta[fields:]
    return np.array(
        [
            0.5 * float(theta[own] @ torch.linalg.solve(covariance[own, own], theta[own]))
            for own in _places(found.family.numbers)
        ]
    )


def worth(found: Fit, shares: Tensor, seed: int = 0) -> np.ndarray:
    """Estimate what the loss of each pair would cost, in nats of all rows, (pairs,)."""
    return np.asarray(np.maximum(wald(found), found.count * pair_information.of(found, shares, seed=seed)))


def _places(numbers: np.ndarray) -> list[slice]:
    """Return where the numbers of each pair stand."""
    ends = np.cumsum(numbers).tolist()
    return [slice(end - number, end) for end, number in zip(ends, numbers.tolist(), strict=True)]


def _device_of(laws: ExactLaws) -> torch.device | None:
    return getattr(laws, "device", None)
