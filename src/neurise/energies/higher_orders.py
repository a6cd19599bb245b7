r"""Which products of three and four spins belong into an energy.

A product T that is absent would add about

.. math:: \Delta_T = \frac{N (\langle T \rangle_{\text{rows}} - m_T)^2}{2 V_T}, \qquad
   V_T = F_{TT} - F_{T\cdot} F^{-1} F_{\cdot T},

nats to the log-likelihood of N rows: its moment is compared with that of the law, in units of its standard error given the
parameters that are there. The extended Bayesian criterion charges :math:`\tfrac12 \log N + \log \tbinom qk` for a product of
k > 2 of q sites, so that the many that could be tried do not find one by chance; pairs cost what they do on a graph. The product
that gains most beyond its charge is added and all are fitted again, until none gains. Then those are dropped, the weakest first,
whose loss costs less than their charge.

Held-back rows decide whether this law takes the place of the pairwise one: it must be better by two standard errors.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from itertools import combinations

import numpy as np
import torch
from torch import Tensor

from neurise.deadline import Work
from neurise.energies import maximum_likelihood, products
from neurise.energies.choosing import CERTAIN, FOLDS
from neurise.energies.learning import Learnt
from neurise.energies.maximum_likelihood import Aim, Fit
from neurise.energies.products import Observed, ProductFit, Sets
from neurise.rows import Rows, with_folds

MOST_SITES = 20
"""Spins up to which the law is written out for every fit."""
MOST_ORDER = 4
"""Sites of the largest products."""
FEWEST_ROWS = 50
"""Rows from which such products are looked for."""
MOST_ADDED = 200
"""Products that are added at most."""


def find(rows: Rows, pairs: np.ndarray, *, work: Work | None = None) -> ProductFit | None:
    """Return the law of the products that rows of spins ask for, from a graph of ``pairs`` on; None where pairs are enough."""
    work, aim = work or Work(), Aim.of(rows)
    if aim.count < FEWEST_ROWS or rows.x.shape[1] < 3:
        return None
    data = Observed.of(rows, aim.count)
    start: Sets = (*((site,) for site in range(data.sites)), *map(tuple, pairs.tolist()))
    found = _pruned(_grown(products.fit(data, start), data, work), data, work)
    return found if is_higher(found) else None


def is_higher(found: ProductFit) -> bool:
    """Return whether a law has products of more than two sites."""
    return any(len(own) > 2 for own in found.sets)


def charge(own: tuple[int, ...], sites: int, count: float) -> float:
    """Return the nats that a product must be worth."""
    share = 0.5 if len(own) == 2 else 1.0
    return 0.5 * math.log(max(2.0, count)) + share * math.log(math.comb(sites, len(own)))


def gains(found: ProductFit, data: Observed, masks: np.ndarray) -> np.ndarray:
    """Return about how many nats each of other products would add to the log-likelihood, (masks,); see ``masks_of``."""
    between = found.between(masks)
    own = 1 - found.moments[masks] ** 2
    solved = np.linalg.solve(found.fisher + np.diag(products.penalty(found.sets)) / data.count, between.T)
    left = np.maximum(own - (between * solved.T).sum(1), 1 / data.count)  # what never varies has nothing to say
    return np.asarray(data.count * (data.moments[masks] - found.moments[masks]) ** 2 / (2 * left))


def _grown(found: ProductFit, data: Observed, work: Work) -> ProductFit:
    every = [own for order in range(2, MOST_ORDER + 1) for own in combinations(range(data.sites), order)]
    masks = products.masks_of(data.sites, tuple(every))
    costs = np.array([charge(own, data.sites, data.count) for own in every])
    for _ in range(MOST_ADDED):
        surplus = gains(found, data, masks) - costs
        surplus[np.isin(masks, found.masks)] = -np.inf
        best = int(surplus.argmax())
        if surplus[best] <= 0 or not work.left():
            break
        further = products.fit(data, (*found.sets, every[best]), np.append(found.theta, 0.0))
        if data.count * (further.value - found.value) <= costs[best]:
            break
        found = further
    return found


def _pruned(found: ProductFit, data: Observed, work: Work) -> ProductFit:
    while len(found.sets) > data.sites and work.left():
        costs = np.array([charge(own, data.sites, data.count) for own in found.sets])
        surplus = 0.5 * found.theta**2 / found.covariance.diagonal() - costs
        surplus[: data.sites] = np.inf  # fields stay
        weakest = int(surplus.argmin())
        if surplus[weakest] >= 0:
            break
        kept = tuple(own for place, own in enumerate(found.sets) if place != weakest)
        found = products.fit(data, kept, np.delete(found.theta, weakest))
    return found


def choose(learnt: Learnt, rows: Rows, *, held: Rows | None, seed: int, work: Work) -> ProductFit | None:
    """Return the law with higher products if held-back rows find it better than a pairwise one that was learnt."""
    family = learnt.family
    if family.classes or any(states != 2 for states in family.space.digits) or family.space.sites > MOST_SITES:
        return None
    rows, pairs = replace(rows, fold=None, stream=None), learnt.selected.family.edges
    whole = find(rows, pairs, work=work)
    if whole is None:
        return None
    judged = list[tuple[Tensor, Tensor]]()
    for fitted, judge in _parts(rows, held, seed):
        higher, pairwise = (whole, learnt.found) if fitted is None else _again(whole, learnt.found, fitted, seed, work)
        if not work.left():
            return None
        gap = torch.from_numpy(higher.log_prob(judge.x.cpu().numpy())) - pairwise.log_prob(judge.x)
        judged.append((gap, torch.ones_like(gap) if judge.weights is None else judge.weights.double().cpu()))
        if _is_better(judged):
            return whole
    return None


def _parts(rows: Rows, held: Rows | None, seed: int) -> Iterator[tuple[Rows | None, Rows]]:
    """Yield rows to fit, None being all of them, and those that judge: what others held back, then folds."""
    if held is not None and len(held):
        yield None, held
    folds = with_folds(rows, FOLDS, seed=seed)
    assert folds.fold is not None
    for number in range(FOLDS):
        inside = folds.fold == number
        yield replace(folds.take(~inside), fold=None), replace(folds.take(inside), fold=None)


def _is_better(judged: list[tuple[Tensor, Tensor]]) -> bool:
    """Return whether gaps of log-likelihoods with their weights are above zero by two standard errors."""
    gap, weight = (torch.cat(own) for own in zip(*judged, strict=True))
    weight = weight / weight.sum()
    better = float(weight @ gap)
    return better > CERTAIN * float((weight.square() @ (gap - better).square()).sqrt())


def _again(whole: ProductFit, pairwise: Fit, rows: Rows, seed: int, work: Work) -> tuple[ProductFit, Fit]:
    """Find both from fewer rows; the pairwise law keeps its pairs."""
    aim = Aim.of(rows)
    pairs = np.array([own for own in whole.sets if len(own) == 2], dtype=np.int64).reshape(-1, 2)
    data = Observed.of(rows, aim.count)
    higher = find(rows, pairs, work=work) or products.fit(data, tuple(own for own in whole.sets if len(own) < 3))
    own = maximum_likelihood.fit(pairwise.laws, aim, prior=pairwise.prior, start=pairwise.theta, seed=seed, work=work)
    return higher, own
