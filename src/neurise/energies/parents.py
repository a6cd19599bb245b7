r"""For every site a few others that tell most about it, found for all sites at once.

The conditional of site u is a regression on its parents P(u),

.. math:: \log \mu(x_u = a \mid x) = b_{ua} + \sum_{i \in P(u)} A_{ua, i x_i} + \text{const}.

**Forward.** The residual of a regression is what it does not explain yet, :math:`r_u = e_{x_u} - \mu(\cdot \mid x)`. One matrix
product gives its covariance with every other site, and from it what each site would add to the log-likelihood, to second
order. The best joins the parents, the regression is solved again, and so on until nothing adds more than a threshold. The
unit of the threshold is that of the extended Bayesian criterion, :math:`d\,(\tfrac12 \log N + \log q)` nats for the d numbers of
a parent; how many units are best is seen on rows that were held back, once for all sites.

**Backward.** A parent that was useful at first may be told by later ones: those whose loss costs less than the threshold go.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional

from neurise.deadline import Work
from neurise.energies.regressions import Sample, sample_of
from neurise.energies.small_regressions import Design, solve
from neurise.rows import Rows

UNITS = (1.0, 0.7, 0.5, 0.35, 0.25, 0.18, 0.12, 0.08)
"""Thresholds that are tried, in units of the extended Bayesian criterion."""


PRIORS = (3.0, 1.0, 0.3, 0.1, 0.03, 0.01)
"""Penalties that are tried for the regressions on the parents that were found."""


class Parents(NamedTuple):
    """The parents of every site, and the regression on them."""

    sites: Tensor  # (sites, K) numbers of sites, −1 where a site has fewer
    weight: Tensor  # (sites, K, O, O): of the features of a parent, for the outcomes of the site
    bias: Tensor  # (sites, base, O): of the base features, a one or the classes


@dataclass
class Path:
    """What happened along the way, to choose the threshold by: a line for every round."""

    gains: list[Tensor]  # (sites,): what the parent of this round was said to add, 0 where there was none
    scores: list[Tensor]  # (sites,): nats of a row held back after it


@torch.no_grad()
def of_rows(
    rows: Rows,
    held: Rows | None,
    states: int,
    allowed: Tensor,
    *,
    classes: int = 0,
    most: int,
    work: Work | None = None,
) -> Parents:
    """Find the parents of all sites of rows of tokens, among those that are ``allowed``, where that is.

    With classes every site has a bias for each of them.
    """
    device = allowed.device
    found = []
    for part in (rows, held):
        if part is not None:
            sample = sample_of(part, states, device)
            found.append((sample, _base(part, sample, classes)))
    return find(*found[0], allowed, found[1] if len(found) > 1 else None, most=most, work=work or Work())


def _base(rows: Rows, sample: Sample, classes: int) -> Tensor:
    """Return the features that every site looks at: its class, or a one, (n, B)."""
    if not classes or rows.y is None:
        return sample.features.new_ones(len(sample.features), 1)
    labels = rows.y[sample.place.to(rows.y.device)].to(sample.features.device)
    return functional.one_hot(labels.long(), classes).to(sample.features)


def find(
    sample: Sample,
    base: Tensor,
    allowed: Tensor,
    held: tuple[Sample, Tensor] | None,
    *,
    most: int,
    work: Work,
) -> Parents:
    """Find the parents among the ``allowed`` (sites, sites); ``base`` (n, B) are features that every site looks at.

    ``held`` are rows to choose the threshold by, with their base; without them it is one unit.
    """
    sites, outcomes = sample.target.shape[1:]
    freedom = 1 if outcomes == 1 else (outcomes - 1) ** 2
    rows = float(sample.count.sum())
    unit = freedom * (0.5 * math.log(max(rows, 2.0)) + math.log(sites))
    design = Design(sample, base)
    chosen = torch.full((sites, most), -1, dtype=torch.int64, device=base.device)
    theta = solve(design, chosen[:, :0], None, rounds=8)
    judge = None if held is None else Design(*held)
    path = Path([], [judge.scores(chosen[:, :0], theta)] if judge else [])
    live = torch.arange(sites, device=base.device)
    least = (UNITS[-1] if judge else UNITS[0]) * unit
    for size in range(min(most, sites - 1)):
        if not work.left():
            break
        gain, best = _offers(design, chosen[:, :size], theta, live, allowed, rows)
        there = gain > least
        if not bool(there.any()):
            break
        live, best, gain = live[there], best[there], gain[there]
        chosen[live, size] = best
        theta = functional.pad(theta, (0, outcomes))
        theta[live] = solve(design, chosen[:, : size + 1], theta, rounds=3, only=live)
        path.gains.append(torch.zeros(sites, device=base.device).index_copy_(0, live, gain))
        if judge:
            path.scores.append(judge.scores(chosen[:, : size + 1], theta, only=live, before=path.scores[-1]))
    threshold = _threshold(path, unit) if judge else unit
    for size, gains in enumerate(path.gains):  # a site's path ends with the first parent that adds too little
        chosen[:, size] = torch.where(
            (gains > threshold) & ((chosen[:, size - 1] >= 0) if size else True), chosen[:, size], -1
        )
    return _backward(design, chosen[:, : max(1, len(path.gains))], threshold, rows, judge, work)


def _threshold(path: Path, unit: float) -> float:
    """Return the threshold that says most about the rows held back."""
    totals = []
    for units in UNITS:
        score, on = path.scores[0], torch.ones_like(path.scores[0], dtype=torch.bool)
        for gains, after in zip(path.gains, path.scores[1:], strict=True):
            on = on & (gains > units * unit)
            score = torch.where(on, after, score)
        totals.append(float(score.double().sum()))
    best = min(totals)
    # The first that is as good: other machines round differently.
    return unit * UNITS[next(place for place, total in enumerate(totals) if total <= best + 1e-6 * abs(best))]


def _offers(
    design: Design, chosen: Tensor, theta: Tensor, live: Tensor, allowed: Tensor, rows: float
) -> tuple[Tensor, Tensor]:
    """Return the most that any further parent would add to each site, in nats, and which it is."""
    gains, places = [], []
    for part in design.blocks(live, max(8, chosen.shape[1])):
        offered = gain(design, part, design.logits(chosen, theta, part), rows)  # (sites of the part, sites)
        best = _without(offered.masked_fill_(~allowed[part], 0.0), chosen[part]).max(dim=1)
        gains.append(best.values)
        places.append(best.indices)
    return torch.cat(gains), torch.cat(places)


def _without(offered: Tensor, taken: Tensor) -> Tensor:
    """Take back what is offered by sites that are parents already."""
    padded = functional.pad(offered, (0, 1))
    return padded.scatter_(1, torch.where(taken >= 0, taken, offered.shape[1]), 0.0)[:, :-1]


def gain(design: Design, part: Tensor, logits: Tensor, rows: float) -> Tensor:
    r"""Return what every site would add to the log-likelihood of those of a part, to second order, (part, sites).

    For two states it is :math:`N g^2 / 2V` with g the covariance of the residual and the feature and V the curvature beside a
    constant; for more the same with :math:`V_{ab} = \pi_a \rho_b`, as in the test of a table of counts.
    """
    sample, outcomes = design.sample, design.sample.outcomes
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


def _penalised(design: Design, chosen: Tensor, judge: Design, theta: Tensor, work: Work) -> Tensor:
    """Solve with the penalty that says most about the rows held back, the strongest first, as long as there is time."""
    best, found = math.inf, theta
    for prior in PRIORS:
        if not work.left():
            break
        own = replace(design, prior=prior)
        vars(own).update(columns=design.columns, target=design.target)  # of the same rows
        theta = solve(own, chosen, theta, rounds=6)
        score = float(judge.scores(chosen, theta).double().sum())
        if not score < best - 1e-6 * abs(score):
            break
        best, found = score, theta
    return found


def _backward(
    design: Design, chosen: Tensor, threshold: float, rows: float, judge: Design | None, work: Work
) -> Parents:
    """Drop parents that cost less than the threshold, and solve what is left."""
    theta = solve(design, chosen, None, rounds=12)
    for _ in range(2):
        if not work.left():
            break
        cost = design.costs(chosen, theta) * rows
        weak = (cost < threshold) & (chosen >= 0)
        if not bool(weak.any()):
            break
        # The weakest alone: of two that tell the same, one must stay.
        weakest = torch.where(weak, cost, torch.inf)
        weak &= weakest == weakest.amin(1, keepdim=True)
        chosen = torch.where(weak, -1, chosen)
        theta = solve(design, chosen, theta, rounds=4)
    if judge is not None:
        theta = _penalised(design, chosen, judge, theta, work)
    order = (chosen < 0).to(torch.int8).argsort(dim=1, stable=True)  # gaps to the end
    chosen = chosen.gather(1, order)
    base, outcomes = design.base.shape[1], design.sample.outcomes
    weight = theta[:, :, base:].reshape(len(chosen), outcomes, -1, outcomes).permute(0, 2, 3, 1)  # (sites, K, in, out)
    weight = weight.gather(1, order[..., None, None].expand_as(weight))
    return Parents(chosen, weight * (chosen >= 0)[..., None, None], theta[:, :, :base].transpose(1, 2))
