r"""For every site a few others that tell most about it, found for all sites at once.

The conditional of site u is a regression on its parents P(u),

.. math:: \log \mu(x_u = a \mid x) = b_{ua} + \sum_{i \in P(u)} A_{ua, i x_i} + \text{const},

whose terms have a heavy-tailed law of scale s and cut c beforehand (:mod:`neurise.energies.small_regressions`).

**Forward.** Parents join one after another (:mod:`neurise.energies.forward_selection`), until none adds more than a threshold.
**Backward.** A parent that was useful at first may be told by later ones: those whose loss costs less than the threshold go.
**Twice.** Threshold and prior depend on each other: at a small scale many weak parents help, at a large one they harm. Both are
chosen by rows that were held back, first the threshold, then the prior; a search for few parents finds the prior of the real one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional

from neurise.deadline import Work
from neurise.energies.forward_selection import criterion, forward
from neurise.energies.regressions import Sample, sample_of
from neurise.energies.small_regressions import Design, Prior, solve
from neurise.rows import Rows

SCALES = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0)
"""Scales s of the terms that are tried."""
TAILS = (3.0, 1.0, 0.3, 0.1, 0.03, 0.01, 0.003)
"""Cuts c of their tails that are tried."""
WAYS = ((0, 1), (-1, 0), (1, 0), (0, -1))
"""How a neighbour in the two lists is reached."""
SCOUT = 8
"""Parents that are looked for to find a prior; with that the search begins again."""


class Parents(NamedTuple):
    """The parents of every site, and the regression on them."""

    sites: Tensor  # (sites, K) numbers of sites, −1 where a site has fewer
    weight: Tensor  # (sites, K, O, O): of the features of a parent, for the outcomes of the site
    bias: Tensor  # (sites, base, O): of the base features, a one or the classes


@dataclass
class Fitted:
    """Regressions on parents, and how many nats of a row held back they have; 0 where none was."""

    chosen: Tensor  # (sites, K)
    theta: Tensor  # (sites, O, B + K·O)
    prior: Prior
    score: float = 0.0


@torch.no_grad()
def of_rows(
    rows: Rows,
    held: Rows | None,
    states: int,
    allowed: Tensor,
    *,
    classes: int = 0,
    most: int | None = None,
    work: Work | None = None,
) -> Parents:
    """Find the parents of all sites of rows of tokens, among those that are ``allowed`` (sites, sites), where that is.

    ``most`` is how many a site may have; None takes all that are allowed, without a choice. With classes every site has a
    bias for each of them. Without rows held back the threshold is one unit of the criterion.
    """
    device, work, designs = allowed.device, work or Work(), list[Design]()
    for part in (rows, held):
        if part is not None:
            sample = sample_of(part, states, device)
            designs.append(Design(sample, _base(part, sample, classes)))
    design, judge = designs[0], designs[1] if len(designs) > 1 else None
    if most is None:
        chosen = _all_of(allowed)
        found = penalised(design, judge, chosen, solve(design, chosen, None, rounds=12), work)
    else:
        found = find(design, judge, allowed, most, work)
    return _written(found, design)


def _base(rows: Rows, sample: Sample, classes: int) -> Tensor:
    """Return the features that every site looks at: its class, or a one, (n, B)."""
    if not classes or rows.y is None:
        return sample.features.new_ones(len(sample.features), 1)
    labels = rows.y[sample.place.to(rows.y.device)].to(sample.features.device)
    return functional.one_hot(labels.long(), classes).to(sample.features)


def _all_of(allowed: Tensor) -> Tensor:
    """Write booleans (sites, sites) as numbers of sites, (sites, most that any has), −1 at the end."""
    order = (~allowed).to(torch.int8).argsort(dim=1, stable=True)
    order = torch.where(allowed.gather(1, order), order, -1)
    return order[:, : max(1, int(allowed.sum(1).max()))]


def find(design: Design, judge: Design | None, allowed: Tensor, most: int, work: Work) -> Fitted:
    """Look for a few parents to find a prior that suits them, and with that for as many as help."""
    best, unit = None, criterion(design)
    for number in (min(most, SCOUT), most) if judge else (most,):
        path = forward(design, judge, allowed, most=number, unit=unit, work=work)
        threshold = path.threshold(unit) if judge else unit
        chosen, theta = backward(design, path.until(threshold), threshold, work)
        found = penalised(design, judge, chosen, theta, work)
        if best is None or found.score < best.score:
            best = found
        if number == most or not work.left():
            break
        design = design.with_prior(best.prior)
    assert best is not None
    return best


def backward(design: Design, chosen: Tensor, threshold: float, work: Work) -> tuple[Tensor, Tensor]:
    """Drop parents that cost less than the threshold, and solve what is left."""
    theta = solve(design, chosen, None, rounds=12)
    for _ in range(2):
        if not work.left():
            break
        cost = design.costs(chosen, theta) * design.rows
        weak = (cost < threshold) & (chosen >= 0)
        if not bool(weak.any()):
            break
        # The weakest alone: of two that tell the same, one must stay.
        weakest = torch.where(weak, cost, torch.inf)
        weak &= weakest == weakest.amin(1, keepdim=True)
        chosen = torch.where(weak, -1, chosen)
        theta = solve(design, chosen, theta, rounds=4)
    return chosen, theta


def penalised(design: Design, judge: Design | None, chosen: Tensor, theta: Tensor, work: Work) -> Fitted:
    """Solve with the prior that says most about the rows held back, as long as there is time.

    It is found step by step, from that of the design on: whichever neighbour in the lists is better first.
    """
    found = Fitted(chosen, theta, design.prior)
    if judge is None:
        return found
    found.score, tried = judge.total(chosen, theta), {design.prior}
    ways = list(WAYS)
    while ways and work.left():
        prior = _moved(found.prior, ways[0])
        if prior is None or prior in tried:
            ways = ways[1:]
            continue
        tried.add(prior)
        theta = solve(design.with_prior(prior), chosen, found.theta, rounds=6)
        score = judge.total(chosen, theta)
        if score < found.score * (1 - 1e-5):
            found, way = Fitted(chosen, theta, prior, score), ways[0]
            ways = [way, *(other for other in WAYS if other != way)]
        else:
            ways = ways[1:]
    return found


def _moved(prior: Prior, way: tuple[int, int]) -> Prior | None:
    """Go to a neighbour in the lists; None at their ends."""
    scale, tail = SCALES.index(prior.scale) + way[0], TAILS.index(prior.tail) + way[1]
    return Prior(SCALES[scale], TAILS[tail]) if 0 <= scale < len(SCALES) and 0 <= tail < len(TAILS) else None


def _written(found: Fitted, design: Design) -> Parents:
    """Move gaps to the end, and take the weights apart."""
    chosen, theta = found.chosen, found.theta
    order = (chosen < 0).to(torch.int8).argsort(dim=1, stable=True)
    chosen = chosen.gather(1, order)[:, : max(1, int((chosen >= 0).sum(1).max()))]
    base, outcomes = design.base.shape[1], design.sample.outcomes
    weight = theta[:, :, base:].reshape(len(chosen), outcomes, -1, outcomes).permute(0, 2, 3, 1)  # (sites, K, in, out)
    weight = weight.gather(1, order[..., None, None].expand_as(weight))[:, : chosen.shape[1]]
    return Parents(chosen, weight * (chosen >= 0)[..., None, None], theta[:, :, :base].transpose(1, 2))
