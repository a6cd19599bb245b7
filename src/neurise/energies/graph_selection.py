r"""Which pairs of sites interact: candidates by regressions of every site, then decimation by likelihood.

**Candidates.** Every site is regressed on all others. What the loss of a pair would cost both of its sites, in nats of all rows, is
a first score of it: half of Wald's statistic, each way. Pairs above a low bar are candidates; the bar rises until the laws on them
can be summed exactly.

**Growth.** The likelihood on the candidates is maximised. Among draws of that law every absent pair has a mean and a covariance with
what is there; the difference g of its mean from that of the data would add

.. math:: \tfrac12\, g^\top \bigl[\bigl(\tfrac1N + \tfrac1M\bigr) (F_{kk} - F_{kS} F_{SS}^{-1} F_{Sk})\bigr]^{-1} g

nats, M being the number of draws. Pairs that would add more than the bar join.

**Decimation.** A pair whose loss costs less than a threshold,

.. math:: \tfrac12\, J_{ij}^\top\, \Sigma_{ij}^{-1} J_{ij} < \tau\,(p-1)^2, \qquad \Sigma = (N F + c)^{-1},

is dropped, the weakest half of such pairs at a time since one may stand in for another, and the likelihood is maximised again.
:math:`\tau = \tfrac12 \log N` is the Bayesian criterion; lower ones keep what pays in prediction.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from neurise.deadline import Work
from neurise.energies import maximum_likelihood
from neurise.energies.exact_laws import ExactLaws, exact_laws
from neurise.energies.family import Family
from neurise.energies.maximum_likelihood import Fit
from neurise.energies.regressions import sample_of
from neurise.energies.small_regressions import Design, solve
from neurise.rows import Rows
from neurise.space import Space

BARS = (2.5, 3.5, 5.0, 7.0, 10.0, 15.0, 25.0)
"""Nats that a candidate's loss costs at least, a number of its table; the first with which the laws can be summed is taken."""
LEAST_DRAWS, MOST_DRAWS = 20_000, 200_000
"""Draws that absent pairs are judged by."""
AT_ONCE = 256
"""Absent pairs that are judged at a time."""


@torch.no_grad()
def pair_costs(rows: Rows, states: int, *, classes: int = 0, prior: float = 1.0) -> Tensor:
    """Return nats of all rows that the loss of each pair would cost both sites, by regressions on all others, (sites, sites)."""
    sample = sample_of(rows, states, torch.device("cpu"))
    base = sample.features.new_ones(len(sample.features), 1)
    if classes and rows.y is not None:
        base = torch.nn.functional.one_hot(rows.y[sample.place].long(), classes).to(sample.features)
    sites = rows.x.shape[1]
    design = Design(sample, base, prior)
    every = torch.arange(sites)
    chosen = torch.stack([torch.cat([every[:u], every[u + 1 :]]) for u in range(sites)])
    theta = solve(design, chosen, None, rounds=12)
    costs = design.costs(chosen, theta) * float(sample.count.sum())
    found = torch.zeros(sites, sites, dtype=costs.dtype).scatter_(1, chosen, costs)
    return found + found.T


def candidates(costs: Tensor, space: Space, classes: int = 0) -> tuple[Family, ExactLaws] | None:
    """Return the family of the pairs above the lowest bar with which its laws can be summed; None where none will do."""
    first, second = torch.triu_indices(space.sites, space.sites, 1)
    numbers = (space.states - 1) ** 2
    for bar in BARS:
        there = costs[first, second] > bar * numbers
        family = Family(space, torch.stack([first[there], second[there]], 1).numpy(), classes)
        laws = exact_laws(family)
        if laws is not None:
            return family, laws
    return None


def decimate(
    found: Fit,
    laws: ExactLaws,
    mean: Tensor,
    shares: Tensor,
    *,
    threshold: float,
    prior: float,
    seed: int = 0,
    work: Work | None = None,
) -> tuple[Fit, ExactLaws]:
    """Drop pairs whose loss costs less than the threshold, in nats a number of the table, until there are none."""
    while True:
        costs = wald(found) / found.family.inner**2
        weak = np.flatnonzero(costs < threshold)
        if not len(weak) or (work is not None and not work.left()):
            return found, laws
        gone = weak[np.argsort(costs[weak], kind="stable")[: -(-len(weak) // 2)]]
        kept = np.ones(len(found.family.edges), dtype=bool)
        kept[gone] = False
        family, own = found.family.restricted(kept), found.family.inner**2
        places = torch.cat(
            [
                torch.ones(family.num_fields, dtype=torch.bool),
                torch.from_numpy(kept).repeat_interleave(own),
            ]
        )
        narrower = exact_laws(family)
        assert narrower is not None  # fewer pairs are never wider
        laws, mean = narrower, mean[places]
        found = maximum_likelihood.fit(
            family, laws, mean, shares, found.count, prior=prior, start=found.theta[places], seed=seed, work=work
        )


def grow(
    found: Fit, laws: ExactLaws, rows: Rows, shares: Tensor, *, bar: float, seed: int = 0
) -> tuple[Family, ExactLaws] | None:
    """Return the family with absent pairs that would add more than the bar; None where there are none, or all are too wide.

    A site is in one new pair at most: what one pair explains need not be explained by its neighbours too.
    """
    family = found.family
    gains, pairs = additions(found, laws, rows, shares, seed=seed)
    taken, joined = set[int](), list[list[int]]()
    for place in np.argsort(-gains, kind="stable").tolist():
        pair = pairs[place].tolist()
        if gains[place] <= bar * family.inner**2:
            break
        if taken.isdisjoint(pair):
            joined.append(pair)
            taken.update(pair)
    while joined:  # half as many where so many are too wide
        edges = np.concatenate([family.edges, joined])
        wider = Family(family.space, edges[np.lexsort(edges.T[::-1])], family.classes)
        summed = exact_laws(wider)
        if summed is not None:
            return wider, summed
        joined = joined[: len(joined) // 2]
    return None


def additions(
    found: Fit, laws: ExactLaws, rows: Rows, shares: Tensor, *, seed: int = 0
) -> tuple[np.ndarray, np.ndarray]:
    """Return what every absent pair would add to the log-likelihood of all rows, (m,) nats, and the pairs, (m, 2)."""
    family, rng = found.family, np.random.default_rng(seed)
    there = np.zeros((family.space.sites, family.space.sites), dtype=bool)
    there[tuple(family.edges.T)] = True
    pairs = np.argwhere(np.triu(~there, 1))
    draws = int(min(MOST_DRAWS, max(LEAST_DRAWS, 2 * found.count)))
    samples = []
    for kind, share in enumerate(shares.tolist()):
        samples.append(laws.draw(found.theta, kind, max(2, round(draws * share)), rng))
    inverse = torch.linalg.inv(found.fisher + torch.diag(found.penalty + maximum_likelihood.SMOOTH))
    own, gains = family.inner**2, np.empty(len(pairs))
    for start in range(0, len(pairs), AT_ONCE):
        part = Family(family.space, pairs[start : start + AT_ONCE], family.classes)
        both = Family(family.space, np.concatenate([family.edges, part.edges]), family.classes)
        joint = both.covariance(samples, shares)
        drawn = both.mean_of(samples, shares)[family.size :]
        rest = joint[family.size :, family.size :]
        across = joint[family.size :, : family.size]
        left = rest - across @ inverse @ across.T
        number = len(part.edges)
        blocks = left.view(number, own, number, own).diagonal(dim1=0, dim2=2).permute(2, 0, 1)
        blocks = blocks + torch.eye(own, dtype=torch.float64) * maximum_likelihood.SMOOTH
        gap = (part.mean(rows)[family.num_fields :] - drawn).view(number, own)
        noise = 1 / found.count + 1 / draws
        gains[start : start + AT_ONCE] = (
            0.5 / noise * (gap * torch.linalg.solve(blocks, gap[..., None]).squeeze(-1)).sum(1).numpy()
        )
    return gains, pairs


def wald(found: Fit) -> np.ndarray:
    """Return what the loss of each pair would cost, in nats of all rows, (pairs,)."""
    family, own = found.family, found.family.inner**2
    covariance = found.covariance()[family.num_fields :, family.num_fields :]
    blocks = covariance.view(len(family.edges), own, len(family.edges), own).diagonal(dim1=0, dim2=2).permute(2, 0, 1)
    numbers = found.theta[family.num_fields :].view(-1, own)
    costs: np.ndarray = (0.5 * (numbers * torch.linalg.solve(blocks, numbers[..., None]).squeeze(-1)).sum(1)).numpy()
    return costs
