r"""Which energy to take: on few pairs, or on all of them with couplings that are held small.

* **A graph** by the extended Bayesian criterion, which charges :math:`\tfrac12 d_{ij} \log N + \tfrac12 \log \tbinom q2` nats for a
  pair with :math:`d_{ij} = (p_i - 1)(p_j - 1)` couplings.
* **A looser graph**, on which a coupling must be worth one nat, as prediction asks for.
* **All pairs**, where all configurations can be summed, with a Cauchy law of the couplings of scale s.

The likelihood of rows that were held back decides. The graph is taken unless another is better by more than twice the
standard error of their difference.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import numpy as np
import torch
from torch import Tensor

from neurise.deadline import Work
from neurise.energies import maximum_likelihood
from neurise.energies.exact_laws import exact_laws
from neurise.energies.family import Family
from neurise.energies.graph_selection import Rule, decimate, grow
from neurise.energies.maximum_likelihood import Aim, Fit, Prior
from neurise.energies.pair_candidates import candidates
from neurise.energies.solved import ExactLaws
from neurise.rows import Rows, with_folds
from neurise.space import Space

PRIOR = Prior(1.0)
"""The prior of the couplings on a graph: they are about as large as 1."""
MANY, FEW = Prior(0.1, 0.5), Prior(0.1, 0.1)
"""Priors where all pairs are taken: many couplings that are moderate, or a few that are strong, on the way to a graph."""
ON_THE_WAY = 6
"""Steps with the latter prior, which need not come to an end."""
QUICK = 2**20
"""Configurations up to which all pairs are tried whatever the number of rows."""
FEW_ROWS = 5000
"""Rows up to which they are tried wherever all configurations can be summed; with more, the graph leaves little to them."""
FOLDS, ONE_FOLD = 3, 1000
"""Parts that are held back in turn, and rows from which one of them says enough."""
ENOUGH_HELD = 50
"""Rows that were held back by others, from which they are used instead."""
CERTAIN = 2.0
"""Standard errors by which another energy must be better than that of the graph."""
LOOSE = 1.0
"""Nats that a coupling of the looser graph must be worth."""
GRAPH = "found by the extended Bayesian criterion"
PAYING = "worth a nat for each coupling"
ALL = "with a Cauchy prior"


@dataclass(frozen=True)
class Setting:
    """What all fits have in common."""

    space: Space
    classes: int = 0
    device: torch.device | None = None
    seed: int = 0
    work: Work = field(default_factory=Work)
    chains: bool = False  # whether Markov chains may take the place of sums that cannot be done

    def highest(self, aim: Aim) -> float:
        """Return the nats that candidates may be asked for so that they can be summed: what a pair must be worth to two sites."""
        rule = self.extended(aim)
        return 2 * (rule.each + rule.pair) if self.chains else math.inf

    def rule(self, each: float, pair: float = 0.0, prior: Prior = PRIOR) -> Rule:
        """Return a rule by which graphs are judged."""
        return Rule(each, pair, prior, self.seed, self.work)

    def extended(self, aim: Aim) -> Rule:
        """Return the extended Bayesian criterion."""
        pairs = self.space.sites * (self.space.sites - 1) // 2
        return self.rule(0.5 * math.log(max(2.0, aim.count)), 0.5 * math.log(max(1, pairs)))


def given(aim: Aim, setting: Setting, edges: np.ndarray) -> Fit | None:
    """Return the energy on pairs that are known; None where its sums cannot be done."""
    laws = exact_laws(Family(setting.space, edges, setting.classes), setting.device)
    return None if laws is None else setting.rule(0.0).fit(laws, aim)


def possible(aim: Aim, setting: Setting, begun: dict[str, Fit] | None = None) -> dict[str, Fit]:
    """Return the energies to choose from, by how they were taken, the graph first; none where no sum can be done.

    Where the same was ``begun`` with more rows, all pairs start from there, and a graph is not grown: it is to be judged only.
    """
    dense = _all_pairs(aim, setting)
    if dense is None:
        return _graphs(aim, setting, begun)
    start = aim.regressed(setting.space.states).start(dense.family)
    start = start if begun is None else begun[ALL].theta
    every = setting.rule(0.0, prior=MANY).fit(dense, aim, start)
    rule = setting.extended(aim)
    few = maximum_likelihood.fit(
        dense, aim, prior=FEW, start=every.theta, rounds=ON_THE_WAY, seed=setting.seed, work=setting.work
    )
    few = decimate(few, aim, replace(rule, prior=FEW))
    graph = decimate(rule.fit(few.laws, aim, few.theta), aim, rule)
    return {GRAPH: grow(graph, aim, rule) if begun is None else graph, ALL: every}


def _all_pairs(aim: Aim, setting: Setting) -> ExactLaws | None:
    family = Family.dense(setting.space, setting.classes)
    worth = setting.space.size * family.kinds <= QUICK or aim.count <= FEW_ROWS
    return exact_laws(family, setting.device) if worth else None


def _graphs(aim: Aim, setting: Setting, begun: dict[str, Fit] | None) -> dict[str, Fit]:
    """Return a strict graph and a loose one, both cut from the candidates of regressions."""
    regressed = aim.regressed(setting.space.states)
    laws = candidates(regressed.costs, setting.space, setting.classes, setting.device, highest=setting.highest(aim))
    if laws is None:
        return {}
    rule, strict = setting.rule(LOOSE), setting.extended(aim)
    loose = decimate(rule.fit(laws, aim, regressed.start(laws.family)), aim, rule)
    graph = decimate(loose, aim, strict)
    return {GRAPH: grow(graph, aim, strict) if begun is None else graph, PAYING: loose}


def choose(aim: Aim, setting: Setting, held: Rows | None = None) -> tuple[str, dict[str, Fit]]:
    """Return the name of the best energy, and all of them."""
    found = possible(aim, setting)
    if len(found) < 2 or not setting.work.left():
        return next(iter(found), ""), found
    scores = {name: list[Tensor]() for name in found}
    weights = list[Tensor]()
    for rows, judge in _parts(aim.rows, held, setting.seed):
        own = found if rows is None else possible(Aim.of(rows, setting.classes), setting, found)
        for name, fit in own.items():
            scores[name].append(fit.log_prob(judge.x, judge.y))
        weights.append(torch.ones(len(judge)).double() if judge.weights is None else judge.weights.double().cpu())
        if not setting.work.left():
            break
    if not weights:
        return GRAPH, found
    weight = torch.cat(weights) / sum(float(part.sum()) for part in weights)
    each = {name: torch.cat(values) for name, values in scores.items() if len(values) == len(weights)}
    best = max(each, key=lambda name: float(weight @ each[name]))
    gap = each[best] - each[GRAPH]
    better = float(weight @ gap)
    error = float((weight.square() @ (gap - better).square()).sqrt())
    return (best if better > CERTAIN * error else GRAPH), found


def _parts(rows: Rows, held: Rows | None, seed: int) -> Iterator[tuple[Rows | None, Rows]]:
    """Yield rows to fit, None being all of them, and those that judge."""
    if held is not None and len(held) >= ENOUGH_HELD:
        yield None, held
        return
    folds = with_folds(rows, FOLDS, seed=seed)
    assert folds.fold is not None
    for number in range(FOLDS if len(rows) < ONE_FOLD else 1):
        inside = folds.fold == number
        if bool(inside.all()) or not bool(inside.any()):  # few observations may all fall into one fold
            continue
        yield replace(folds.take(~inside), fold=None), replace(folds.take(inside), fold=None)
