r"""Which pairs of sites interact: growth and decimation, judged by the likelihood.

**Growth.** The likelihood on the pairs that are there, S, is maximised. In draws of that law every absent pair k has a mean and a
covariance with S. The difference g of its mean from that of the data, beyond what S explains of it, would add

.. math:: \tfrac12\, g^\top \bigl[\bigl(\tfrac1N + \tfrac1M\bigr) (F_{kk} - F_{kS} F_{SS}^{-1} F_{Sk})\bigr]^{-1} g

nats, M being the number of draws. Pairs that would add more than they cost join.

**Decimation.** A pair whose loss would lower the likelihood by less than it costs,

.. math:: \tfrac12\, J_{ij}^\top\, \Sigma_{ij}^{-1} J_{ij} < \tau_{ij}, \qquad \Sigma = (N F + c)^{-1},

is dropped, the weakest half of such pairs at a time since one may stand in for another, and the likelihood is maximised again.
:math:`\tau = \tfrac12 d \log N` for d couplings is the Bayesian criterion; lower ones keep what pays in prediction.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
import torch
from torch import Tensor

from neurise.deadline import Work
from neurise.energies import maximum_likelihood
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


def decimate(found: Fit, aim: Aim, rule: Rule) -> Fit:
    """Drop pairs that are worth less than they cost, until there are none.

    The curvature says which may go. It underrates strong couplings, so that the likelihood has the last word: where too
    much was lost, half as many go, and a pair that may not go alone stays for good.
    """
    needed, most = set[tuple[int, int]](), len(found.family.edges)
    while True:
        costs = wald(found) / rule.price(found.family)
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
        assert laws is not None  # fewer pairs are never wider
        fewer = rule.fit(laws, aim, found.theta[places])
        if rule.height(fewer) >= rule.height(found):
            found, most = fewer, 2 * len(gone)
        elif len(gone) == 1:
            needed.add(tuple(found.family.edges[gone[0]].tolist()))
        else:
            most = len(gone) // 2


def grow(found: Fit, aim: Aim, rule: Rule) -> Fit:
    """Add pairs and drop pairs in turn while the criterion rises."""
    while rule.work.left():
        laws = wider(found, aim, rule)
        if laws is None:
            break
        more = decimate(rule.fit(laws, aim, found.family.carried(found.theta, laws.family)), aim, rule)
        if rule.height(more) <= rule.height(found) + LEAST_RISE:
            break
        found = more
    return found


def wider(found: Fit, aim: Aim, rule: Rule) -> ExactLaws | None:
    """Return the laws with absent pairs that would be worth their cost; None where there are none, or all are too wide.

    A site is in one new pair at most: what one pair explains need not be explained by its neighbours too.
    """
    family = found.family
    absent = absent_from(family)
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


def absent_from(family: Family) -> Family:
    """Return the family of the pairs that are not there."""
    there = np.zeros((family.space.sites, family.space.sites), dtype=bool)
    there[tuple(family.edges.T)] = True
    whole = Family.dense(family.space, family.classes)
    return whole.restricted(~there[tuple(whole.edges.T)])[0]


def additions(found: Fit, absent: Family, aim: Aim, *, seed: int = 0) -> np.ndarray:
    """Return what each absent pair would add to the log-likelihood of all rows, in nats, (pairs,)."""
    family, rng = found.family, np.random.default_rng(seed)
    draws = int(min(MOST_DRAWS, max(LEAST_DRAWS, 2 * found.count)))
    samples = [
        one.draw(max(2, round(draws * s)), rng) for s, one in zip(aim.shares.tolist(), found.solved, strict=True)
    ]
    gains, noise = np.empty(len(absent.edges)), 1 / found.count + 1 / draws
    for start in range(0, len(gains), AT_ONCE):
        part = Family(family.space, absent.edges[start : start + AT_ONCE], family.classes)
        both = Family(family.space, np.concatenate([family.edges, part.edges]), family.classes)
        joint = both.covariance(samples, aim.shares)
        gap = both.mean(aim.rows) - both.mean_of(samples, aim.shares)
        across = joint[family.size :, : family.size]
        inside = (
            joint[: family.size, : family.size]
            + torch.eye(family.size, dtype=torch.float64) * maximum_likelihood.SMOOTH
        )
        # What the draws miss of the moments that are known explains part of what they miss of the others.
        slope = torch.linalg.solve(inside, across.T).T
        left = (joint[family.size :, family.size :] - slope @ across.T) * noise
        gap = gap[family.size :] - slope @ gap[: family.size]
        left += torch.eye(len(gap), dtype=torch.float64) * maximum_likelihood.SMOOTH * noise
        gains[start : start + AT_ONCE] = [
            0.5 * float(gap[own] @ torch.linalg.solve(left[own, own], gap[own])) for own in _places(part.numbers)
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


def _places(numbers: np.ndarray) -> list[slice]:
    """Return where the numbers of each pair stand."""
    ends = np.cumsum(numbers).tolist()
    return [slice(end - number, end) for end, number in zip(ends, numbers.tolist(), strict=True)]


def _device_of(laws: ExactLaws) -> torch.device | None:
    return getattr(laws, "device", None)
