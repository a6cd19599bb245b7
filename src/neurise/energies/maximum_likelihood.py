r"""Maximum likelihood of the laws of a family, by Newton's method with exact moments.

With the mean :math:`m` of the features in N rows and a penalty on the couplings,

.. math:: L(\theta) = \theta \cdot m - \sum_y \pi_y \log Z_y(\theta)
   - \frac1{2N} \sum_{(i,j)} \Bigl[c\, w_{ij}^2 + (1 + d_{ij}) \log\bigl(1 + w_{ij}^2 / s^2\bigr)\Bigr] .

Here :math:`w_{ij} = \lVert W_{ij} \rVert_F / 2 = \tfrac12 \sqrt{p_i p_j} \lVert J_{ij} \rVert`, which is \|J\| for two states.
Couplings are a priori normal with variance 1/c. With a scale s they have a Cauchy law besides, which says that most of the pairs
have next to none and a few are strong; :math:`s = \infty` leaves it out, and L is concave then.

The gradient is the difference of the moments, :math:`g = m - \langle f \rangle_\theta - \lambda \theta`, with
:math:`\lambda = \tfrac{p_i p_j}{4N} [c + (1 + d) / (s^2 + w^2)]`. The curvature is the Fisher information
:math:`F = \mathrm{cov}_\theta f`, which is estimated from draws of the law, plus λ: it sets the way and not the goal. A step is
damped until L rises, so that nothing diverges. The fit ends when the moments are off by a small share of their standard errors,
:math:`\sqrt{N g^\top (F + \lambda)^{-1} g / d}` for d parameters.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from neurise.deadline import Work
from neurise.energies.family import Family, count_of, shares_of
from neurise.energies.pair_candidates import Regressed, regress
from neurise.energies.solved import ExactLaws, Solved
from neurise.rows import Rows

ENOUGH = 0.03
"""Share of their standard errors that moments may be off by in the end: the error of the fit grows by less than a thousandth."""
ROUNDS = 60
LONGEST = 0.5
"""No parameter changes by more in one step: far away the curvature of the draws says nothing."""
DAMPED, MORE, MOST_DAMPED = 1e-3, 10.0, 1e6
"""What is added to the curvature once a step has not led up, how it grows, and where the search ends."""
PER_PARAMETER, LEAST_DRAWS, MOST_DRAWS = 20, 2000, 20_000
"""Draws that the curvature is estimated from."""
FIELDS = 0.1
"""The penalty c of fields, so weak that it matters only where a state never occurs: it then has a chance of about 1/N."""
SMOOTH = 1e-6
"""A curvature for directions in which the draws have none."""
ROUNDING = 1e-6
"""Heights that differ by less, relative to their size, are equal: they are sums in float32. The slope then tells."""


class Prior(NamedTuple):
    """How large couplings are beforehand: 1/c is the variance of their normal law, s the scale of their Cauchy law."""

    tail: float  # c
    scale: float = math.inf  # s

    def weights(self, family: Family, theta: Tensor) -> Tensor:
        """Return N λ of each parameter, (size,)."""
        found = torch.full((family.size,), FIELDS, dtype=torch.float64)
        sizes, numbers = family.sizes, torch.from_numpy(family.numbers).double()
        each = sizes * (self.tail + (1 + numbers) / (self.scale**2 + self._squares(family, theta)))
        found[family.num_fields :] = each[family.pairs[:, 2]]
        return found

    def cost(self, family: Family, theta: Tensor) -> float:
        """Return the penalty, in nats of all rows."""
        squares, numbers = self._squares(family, theta), torch.from_numpy(family.numbers).double()
        heavy = (1 + numbers) * torch.log1p(squares / self.scale**2)
        fields = FIELDS * theta[: family.num_fields].square().sum()
        return 0.5 * float((self.tail * squares + heavy).sum() + fields)

    def _squares(self, family: Family, theta: Tensor) -> Tensor:
        r"""Return :math:`\lVert W_{ij} \rVert_F^2 / 4` of each pair, (pairs,): the square of J for two states."""
        couplings = theta[family.num_fields :].square()
        return family.sizes * couplings.new_zeros(len(family.edges)).index_add_(0, family.pairs[:, 2], couplings)


@dataclass(frozen=True)
class Aim:
    """What the rows say to every family of a space: their number, the shares of their classes, and means of features."""

    rows: Rows
    shares: Tensor  # (kinds,)
    count: float  # N

    @classmethod
    def of(cls, rows: Rows, classes: int = 0) -> Aim:
        """Look at rows with their weights and labels."""
        return cls(rows, shares_of(rows, max(1, classes)), count_of(rows))

    def regressed(self, states: int) -> Regressed:
        """Return the regressions of every site on all others; they are done once."""
        if "_regressed" not in vars(self):
            vars(self)["_regressed"] = regress(self.rows, states, classes=len(self.shares))
        found: Regressed = vars(self)["_regressed"]
        return found


@dataclass(frozen=True)
class Fit:
    """The parameters, what is known of them, and whether the moments agree."""

    laws: ExactLaws
    theta: Tensor  # (size,)
    value: float  # mean log-likelihood of the rows given their labels, without the penalty
    solved: list[Solved]  # of each class
    fisher: Tensor  # (size, size)
    prior: Prior
    penalty: Tensor  # (size,): λ
    count: float  # N
    converged: bool
    rounds: int

    @property
    def family(self) -> Family:
        """Whose parameters they are."""
        return self.laws.family

    def covariance(self) -> Tensor:
        r"""Return the covariance of the estimate, :math:`(N F + c)^{-1}`, given the graph."""
        inverse: Tensor = torch.linalg.inv(self.fisher + torch.diag(self.penalty + SMOOTH / self.count))
        return inverse / self.count

    def score(self, rows: Rows) -> float:
        """Return the mean log-likelihood of other rows given their labels, in nats."""
        shares = shares_of(rows, self.family.kinds)
        log_z = torch.tensor([solved.log_z for solved in self.solved], dtype=torch.float64)
        return float(self.theta @ self.family.mean(rows) - shares @ log_z)

    def log_prob(self, x: Tensor, y: Tensor | None = None) -> Tensor:
        """Return the log-likelihood of rows of tokens given their labels, (n,) float64."""
        labels = torch.zeros(len(x), dtype=torch.int64) if y is None else y.cpu().long()
        found = torch.empty(len(x), dtype=torch.float64)
        for kind in torch.unique(labels).tolist():
            here = labels == kind
            law = self.family.interactions(self.theta, kind)
            found[here] = law.log_weight(x.cpu()[here]) - self.solved[kind].log_z
        return found


def fit(
    laws: ExactLaws,
    aim: Aim,
    *,
    prior: Prior,
    start: Tensor | None = None,
    rounds: int = ROUNDS,
    seed: int = 0,
    work: Work | None = None,
) -> Fit:
    """Maximise the penalised likelihood, by so many steps at most."""
    family, count, shares = laws.family, aim.count, aim.shares.tolist()
    mean = family.mean(aim.rows)
    theta = torch.zeros(family.size, dtype=torch.float64) if start is None else start.clone()
    rng = np.random.default_rng(seed)
    draws = min(MOST_DRAWS, max(LEAST_DRAWS, PER_PARAMETER * family.size))

    def height(at: Tensor) -> tuple[float, Tensor, list[Solved]]:
        value, gradient, solved = float(at @ mean), mean.clone(), [laws.solve(at, kind) for kind in range(family.kinds)]
        for share, one in zip(shares, solved, strict=True):
            value -= share * one.log_z
            gradient -= share * one.moments
        weights = prior.weights(family, at) / count
        return value - prior.cost(family, at) / count, gradient - weights * at, solved

    value, gradient, solved = height(theta)
    converged, made, damping = False, 0, 0.0
    identity = torch.eye(family.size, dtype=torch.float64)
    while True:
        samples = [one.draw(max(2, round(draws * share)), rng) for share, one in zip(shares, solved, strict=True)]
        fisher, penalty = family.covariance(samples, aim.shares), prior.weights(family, theta) / count
        curvature = fisher + torch.diag(penalty + SMOOTH)
        newton = torch.linalg.solve(curvature, gradient)
        converged = count * float(newton @ gradient) <= ENOUGH**2 * family.size
        if converged or made >= rounds or (work is not None and not work.left()):
            break
        while True:
            step = torch.linalg.solve(curvature + damping * identity, gradient) if damping else newton
            step = step * min(1.0, LONGEST / float(step.abs().max().clamp(min=LONGEST)))
            further, slope, there = height(theta + step)
            rise, wanted = further - value, float(step @ gradient)
            flat = abs(rise) <= ROUNDING * max(1.0, abs(value)) and float(step @ slope) >= -0.5 * wanted
            if rise >= 1e-4 * wanted or flat:
                break
            damping = max(DAMPED, damping) * MORE
            if damping > MOST_DAMPED:
                break
        if damping > MOST_DAMPED:  # the rise is below the rounding of log Z: this is the top
            break
        theta, value, gradient, solved, made = theta + step, further, slope, there, made + 1
        damping = damping / MORE if damping > DAMPED else 0.0
    plain = value + prior.cost(family, theta) / count
    return Fit(laws, theta, plain, solved, fisher, prior, penalty, count, converged, made)
