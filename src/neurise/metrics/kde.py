"""Kernel density estimate."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import torch
from torch import Tensor

from neurise.batching import batches
from neurise.estimate import Estimate
from neurise.metrics._hamming import tiles
from neurise.metrics._rows import some, tokens
from neurise.space import Space

LOG_ODDS = (-20.0, -1e-3)
"""Where the bandwidth is searched, as log λ/((p−1)(1−λ)): from hardly any smoothing to hardly anything left."""

ROUNDS, POINTS = 4, 33
"""The search: so many rounds, each on so many points between the neighbours of the best one before."""


class DensityScore(NamedTuple):
    """The density that samples give to real rows."""

    log_density: Estimate  # nats; higher is better
    bandwidth: float  # λ


class Neighbours(NamedTuple):
    """How far each row is from the rows of a set: the nearest one, and how many there are at each distance beyond."""

    nearest: Tensor  # (n,)
    counts: Tensor  # (n, sites + 1) float32; column k counts the rows at distance nearest + k
    total: int  # how many rows each was compared with

    def slopes(self, log_odds: Tensor, space: Space) -> tuple[Tensor, Tensor]:
        r"""First and second derivative of the log-density at each row by the log-odds :math:`\theta`, (n,) each.

        Under weights in proportion to the kernel the distance has a mean and a variance at each row:
        :math:`E d - q\lambda` and :math:`\mathrm{Var}\, d - q\lambda(1-\lambda)`.
        """
        beyond = torch.arange(self.counts.shape[1], device=self.counts.device).double()
        weight = self.counts.double() * torch.exp(beyond * log_odds)
        weight /= weight.sum(dim=1, keepdim=True)
        mean = weight @ beyond
        spread = weight @ beyond.square() - mean.square()
        odds = (space.states - 1) * log_odds.exp()
        share = odds / (1 + odds)
        return mean + self.nearest - space.sites * share, spread - space.sites * share * (1 - share)

    def log_density(self, log_odds: Tensor, space: Space) -> Tensor:
        """Logarithm of the density at each row, (n, points), for some points of the log-odds of the bandwidth."""
        beyond = torch.arange(self.counts.shape[1], device=self.counts.device)
        weight = torch.exp(beyond[:, None] * log_odds)  # the nearest has weight 1: nothing underflows that matters
        pieces = batches(len(self.counts), 8 * self.counts.shape[1])
        inside = torch.cat([(self.counts[rows].double() @ weight).log() for rows in pieces])
        constant = space.sites * torch.log1p((space.states - 1) * log_odds.exp()) + math.log(self.total)
        return inside + self.nearest[:, None] * log_odds - constant


def kde(
    samples: Any,
    reference: Any,
    *,
    bandwidth: float | None = None,
    other: Any = None,
    seed: int = 0,
    alphabet: Any = None,
) -> DensityScore:
    r"""Mean log-density of the reference under a kernel estimate from the samples, in nats; higher is better.

    The Aitchison–Aitken kernel keeps each site with probability 1−λ and else takes another symbol: with :math:`d_j(x)` the
    Hamming distance from x to sample j,

    .. math:: \log \hat p(x) = \log \frac1n \sum_j (1-\lambda)^{q - d_j(x)} \Bigl(\frac{\lambda}{p-1}\Bigr)^{d_j(x)}.

    The ``bandwidth`` λ, between 0 and (p−1)/p, is the one under which the samples give each other the highest density,
    leaving out each one's own kernel. Samples that are all copies of each other so get no smoothing, and pay for it.

    The error is the standard error over both sets, to first order: the spread of :math:`\log \hat p` over the reference, and
    that of :math:`\sum_x K_j(x)/\hat p(x)` over the samples, with what each sample adds through the λ that is fitted to them.
    The floor is the score of as many rows of ``other``, with their own λ (the highest that can be hoped for); without
    ``other`` there is none, because rows drawn again from the reference would be copies of what they are scored on.

    >>> import neurise
    >>> data = neurise.datasets.edwards_anderson(side=2, seed=0)
    >>> first, second = data.sample(500, seed=0), data.sample(500, seed=1)
    >>> neurise.metrics.kde(first, second).log_density < 0
    True
    """
    given = {"samples": samples, "reference": reference} | ({} if other is None else {"other": other})
    known = tokens(alphabet, least=2, **given)
    space, (x, y, *rest) = known.space, known.sets
    if space.states < 2:
        raise ValueError("there is one symbol only, and nothing to smooth; name all symbols with alphabet=")
    most = (space.states - 1) / space.states
    if bandwidth is not None and not 0 < bandwidth < most:
        raise ValueError(
            f"bandwidth must be between 0 and (p−1)/p = {most:.4g} for p = {space.states}, got {bandwidth}"
        )
    log_odds = _chosen(x, space, bandwidth)
    around = _neighbours(y, x, space)
    density = around.log_density(log_odds, space)[:, 0]
    share = _shares(x, y, density, log_odds, space)
    if bandwidth is None:
        share += around.slopes(log_odds, space)[0].mean() * _moved(x, log_odds, space)
    error = math.sqrt(float(density.var()) / len(y) + float(share.var()) / len(x))
    floor = None
    if rest:
        z = some(rest[0], len(x), seed)
        floor = float(_neighbours(y, z, space).log_density(_chosen(z, space, bandwidth), space).mean())
    odds = (space.states - 1) * math.exp(float(log_odds))
    return DensityScore(Estimate(float(density.mean()), error=error, floor=floor, units="nats"), odds / (1 + odds))


def _chosen(x: Tensor, space: Space, bandwidth: float | None) -> Tensor:
    """Log-odds of the bandwidth, (1,): of the one that is given, or of the best by leave-one-out."""
    if bandwidth is not None:
        value = math.log(bandwidth / ((space.states - 1) * (1 - bandwidth)))
        return torch.full((1,), value, dtype=torch.float64, device=x.device)
    own = _neighbours(x, None, space)
    low, high = (math.log(-bound) for bound in LOG_ODDS)
    for _ in range(ROUNDS):
        grid = torch.linspace(low, high, POINTS, dtype=torch.float64, device=x.device)
        best = int(own.log_density(-grid.exp(), space).mean(dim=0).argmax())
        low, high = float(grid[max(best - 1, 0)]), float(grid[min(best + 1, POINTS - 1)])
    return -grid[best : best + 1].exp()


def _neighbours(x: Tensor, y: Tensor | None, space: Space) -> Neighbours:
    """Distances from each row of x to the rows of y; without y, to the other rows of x."""
    width = space.sites + 1
    counts = torch.zeros(len(x), width, device=x.device)
    for rows, _, agreement in tiles(x, x if y is None else y, space.states):
        height = rows.stop - rows.start
        place = width * torch.arange(height, device=x.device)[:, None] + (space.sites - agreement.long())
        counts[rows] += torch.bincount(place.ravel(), minlength=height * width).view(height, width)
    if y is None:
        counts[:, 0] -= 1
    nearest = (counts > 0).int().argmax(dim=1)
    for rows in batches(len(x), 12 * width):
        place = nearest[rows, None] + torch.arange(width, device=x.device)
        here = counts[rows]
        counts[rows] = torch.where(place < width, here.gather(1, place.clamp(max=space.sites)), 0)
    return Neighbours(nearest, counts, len(x) - 1 if y is None else len(y))


def _moved(x: Tensor, log_odds: Tensor, space: Space) -> Tensor:
    r"""Return how far each sample moves the log-odds that fit all of them best, times their number, (n,).

    The best θ solves :math:`\sum_i \ell_i' = 0`, :math:`\ell_i` the log-density of sample i under the others. Sample j enters by
    its own :math:`\ell_j'`, and by its share :math:`r_{ij}` of the density at each other: it moves θ by
    :math:`-\psi_j / \sum_i \ell_i''`,

    .. math:: \psi_j = \ell_j' + \sum_{i \ne j} r_{ij} (d_{ij} - E_i d).

    Zero where the best is at an end of the search, and nothing moves it.
    """
    own = _neighbours(x, None, space)
    first, second = own.slopes(log_odds, space)
    curvature = second.mean()
    if bool(curvature >= 0) or not LOG_ODDS[0] < float(log_odds) < LOG_ODDS[1]:
        return torch.zeros_like(first)
    odds = (space.states - 1) * log_odds.exp()
    mean = first + space.sites * odds / (1 + odds)
    density = own.log_density(log_odds, space)[:, 0] + math.log(own.total)
    constant = space.sites * torch.log1p((space.states - 1) * log_odds.exp())
    pull = first.clone()
    for rows, columns, agreement in tiles(x, x, space.states):
        distance = space.sites - agreement.double()
        part = torch.exp(distance * log_odds - constant - density[rows, None])
        if rows == columns:
            part.fill_diagonal_(0)
        pull[columns] += (part * (distance - mean[rows, None])).sum(dim=0)
    return -pull / curvature


def _shares(x: Tensor, y: Tensor, density: Tensor, log_odds: Tensor, space: Space) -> Tensor:
    r"""How much of the density each sample carries, (n,): :math:`\tfrac1N \sum_x K_j(x) / \hat p(x)`, 1 on average."""
    constant = space.sites * torch.log1p((space.states - 1) * log_odds.exp())
    share = torch.zeros(len(x), dtype=torch.float64, device=x.device)
    for rows, columns, agreement in tiles(y, x, space.states):
        distance = space.sites - agreement.double()
        share[columns] += torch.exp(distance * log_odds - constant - density[rows, None]).sum(dim=0)
    return share / len(y)
