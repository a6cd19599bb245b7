r"""Parents that are added one after another, for all sites at once.

The residual of a regression is what it does not explain yet, :math:`r_u = e_{x_u} - \mu(\cdot \mid x)`. One matrix product
gives its covariance with every other site, and from it what each site would add to the log-likelihood, to second order. The best
joins the parents, the regression is solved again, and so on. How far to go is a threshold on what the next parent must add; it
is chosen afterwards, once for all sites, by rows that were held back.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional

from neurise.deadline import Work
from neurise.energies.small_regressions import Design, solve

UNITS = (1.0, 0.7, 0.5, 0.35, 0.25, 0.18, 0.12, 0.08, 0.05, 0.03, 0.02)
"""Thresholds that are tried, in units of the extended Bayesian criterion."""
PATIENCE = 4
"""So many further parents may say nothing about the rows held back before none is added any more."""
LEAST = 2e-4
"""The share of the nats by which a round must be better to count."""
NEWTON = 2
"""Steps that solve a regression again after one more parent has joined."""


def criterion(design: Design) -> float:
    r"""Return the unit of the thresholds: :math:`d\,(\tfrac12 \log N + \log q)` nats for the d numbers of one parent."""
    outcomes = design.sample.outcomes
    freedom = 1 if outcomes == 1 else (outcomes - 1) ** 2
    return freedom * (0.5 * math.log(max(design.rows, 2.0)) + math.log(len(design.target)))


@dataclass
class Path:
    """Parents in the order in which they joined, and what happened on the way: an entry per round."""

    chosen: Tensor  # (sites, rounds) numbers of sites, −1 where there was none
    gains: list[Tensor]  # (sites,): what the parent of this round was said to add, 0 where there was none
    scores: list[Tensor]  # (sites,): nats of a row held back, before the first round and after each

    def threshold(self, unit: float) -> float:
        """Return the threshold that says most about the rows held back."""
        totals = []
        for units in UNITS:
            score, on = self.scores[0], torch.ones_like(self.scores[0], dtype=torch.bool)
            for gains, after in zip(self.gains, self.scores[1:], strict=True):
                on = on & (gains > units * unit)
                score = torch.where(on, after, score)
            totals.append(float(score.double().sum()))
        best = min(totals)
        # The first that is as good: other machines round differently.
        return unit * UNITS[next(place for place, total in enumerate(totals) if total <= best + 1e-6 * abs(best))]

    def until(self, threshold: float) -> Tensor:
        """Return the parents up to the first of each site that adds less, (sites, at least 1)."""
        on, kept = torch.ones(len(self.chosen), dtype=torch.bool, device=self.chosen.device), []
        for number, gains in enumerate(self.gains):
            on = on & (gains > threshold)
            kept.append(torch.where(on, self.chosen[:, number], -1))
        return torch.stack(kept, dim=1) if kept else self.chosen.new_full((len(self.chosen), 1), -1)


def forward(design: Design, judge: Design | None, allowed: Tensor, *, most: int, unit: float, work: Work) -> Path:
    """Add parents among the ``allowed`` (sites, sites), at most so many.

    Without rows held back, the ``judge``, the threshold is one unit. With them the least of all is gone down to, unless the
    rows held back have said before that enough is enough.
    """
    sites, outcomes, device = len(design.target), design.sample.outcomes, design.base.device
    chosen = torch.full((sites, most), -1, dtype=torch.int64, device=device)
    theta = solve(design, chosen[:, :0], None, rounds=8)
    path = Path(chosen, [], [judge.scores(chosen[:, :0], theta)] if judge else [])
    live, least = torch.arange(sites, device=device), (UNITS[-1] if judge else UNITS[0]) * unit
    best, since = math.inf, 0
    for size in range(min(most, sites - 1)):
        if not work.left() or since >= PATIENCE:
            break
        gain, parent = offers(design, chosen[:, :size], theta, live, allowed)
        there = gain > least
        if not bool(there.any()):
            break
        live, parent, gain = live[there], parent[there], gain[there]
        chosen[live, size] = parent
        theta = functional.pad(theta, (0, outcomes))
        theta[live] = solve(design, chosen[:, : size + 1], theta, rounds=NEWTON, only=live)
        path.gains.append(torch.zeros(sites, device=device).index_copy_(0, live, gain))
        if judge:
            path.scores.append(judge.scores(chosen[:, : size + 1], theta, only=live, before=path.scores[-1]))
            total = float(path.scores[-1].double().sum())
            since = 0 if total < best * (1 - LEAST) else since + 1
            best = min(best, total)
    return path


def offers(design: Design, chosen: Tensor, theta: Tensor, live: Tensor, allowed: Tensor) -> tuple[Tensor, Tensor]:
    """Return the most that any further parent would add to each site, in nats, and which it is."""
    gains, places = [], []
    for part in design.blocks(live, max(8, chosen.shape[1])):
        offered = gain(design, part, design.logits(chosen, theta, part))  # (sites of the part, sites)
        best = _without(offered.masked_fill_(~allowed[part], 0.0), chosen[part]).max(dim=1)
        gains.append(best.values)
        places.append(best.indices)
    return torch.cat(gains), torch.cat(places)


def _without(offered: Tensor, taken: Tensor) -> Tensor:
    """Take back what is offered by sites that are parents already."""
    padded = functional.pad(offered, (0, 1))
    return padded.scatter_(1, torch.where(taken >= 0, taken, offered.shape[1]), 0.0)[:, :-1]


def gain(design: Design, part: Tensor, logits: Tensor) -> Tensor:
    r"""Return what every site would add to the log-likelihood of those of a part, to second order, (part, sites).

    For two states it is :math:`N g^2 / 2V` with g the covariance of the residual and the feature and V the curvature beside a
    constant; for more the same with :math:`V_{ab} = \pi_a \rho_b`, as in the test of a table of counts.
    """
    sample, outcomes, rows = design.sample, design.sample.outcomes, design.rows
    law = torch.sigmoid(logits) if outcomes == 1 else torch.softmax(logits, dim=1)  # (part, O, n)
    weight = design.weights(part)
    covariance = ((design.target[part] - law) * weight).flatten(0, 1) @ sample.features  # (part · O, sites · O)
    bend = weight * law * (1 - law)
    if outcomes == 1:
        bend = bend.squeeze(1)
        total = bend.sum(1, keepdim=True).clamp(min=1e-12)
        mean = bend @ sample.features
        curvature = 0.25 * total - mean.square() / total
        return 0.5 * rows * covariance.square() / curvature.clamp(min=1e-4 * total)
    share = (sample.weight @ sample.target.flatten(1)).clamp(min=1 / rows)
    rho = bend.sum(2).flatten().clamp(min=1 / rows)
    each = covariance.square() / (rho[:, None] * share)
    return 0.5 * rows * each.view(len(part), outcomes, -1, outcomes).sum((1, 3))
