r"""Maximum likelihood of the laws of a family, by Newton's method with exact moments.

With the mean :math:`m` of the features in N rows and a penalty that says couplings are a priori normal with variance 1/c,

.. math:: L(\theta) = \theta \cdot m - \sum_y \pi_y \log Z_y(\theta) - \frac{c}{2N} \lVert J \rVert^2

is concave. Its gradient is the difference of the moments, :math:`m - \langle f \rangle_\theta - \tfrac cN J`, its curvature the
Fisher information :math:`F = \mathrm{cov}_\theta f`, which is estimated from draws of the law: it sets the way and not the goal.
A step is damped until L rises, so that nothing diverges, and the fit ends when no moment is off by more than a small share
of its own standard error, :math:`\sqrt{F_{kk}/N}`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from neurise.deadline import Work
from neurise.energies.family import Family, count_of, shares_of
from neurise.energies.solved import ExactLaws, Solved
from neurise.rows import Rows

ENOUGH = 0.05
"""Share of its standard error that a moment may be off by in the end: the error grows by a thousandth."""
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


@dataclass(frozen=True)
class Fit:
    """The parameters, what is known of them, and whether the moments agree."""

    laws: ExactLaws
    theta: Tensor  # (size,)
    value: float  # mean log-likelihood of the rows given their labels, without the penalty
    solved: list[Solved]  # of each class
    fisher: Tensor  # (size, size)
    penalty: Tensor  # (size,): c/N
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


def fit(
    laws: ExactLaws,
    aim: Aim,
    *,
    prior: float,
    start: Tensor | None = None,
    seed: int = 0,
    work: Work | None = None,
) -> Fit:
    """Maximise the likelihood; ``prior`` is c."""
    family, count, shares = laws.family, aim.count, aim.shares.tolist()
    mean = family.mean(aim.rows)
    penalty = torch.full((family.size,), prior / count, dtype=torch.float64)
    penalty[: family.num_fields] = FIELDS / count
    theta = torch.zeros(family.size, dtype=torch.float64) if start is None else start.clone()
    rng = np.random.default_rng(seed)
    draws = min(MOST_DRAWS, max(LEAST_DRAWS, PER_PARAMETER * family.size))

    def height(at: Tensor) -> tuple[float, Tensor, list[Solved]]:
        value, gradient, solved = float(at @ mean), mean.clone(), [laws.solve(at, kind) for kind in range(family.kinds)]
        for share, one in zip(shares, solved, strict=True):
            value -= share * one.log_z
            gradient -= share * one.moments
        return value - 0.5 * float(penalty @ at**2), gradient - penalty * at, solved

    value, gradient, solved = height(theta)
    converged, made, damping = False, 0, 0.0
    identity = torch.eye(family.size, dtype=torch.float64)
    while True:
        samples = [one.draw(max(2, round(draws * share)), rng) for share, one in zip(shares, solved, strict=True)]
        fisher = family.covariance(samples, aim.shares)
        curvature = fisher + torch.diag(penalty + SMOOTH)
        # Where a moment does not vary, neither in the law nor by chance, there is nothing to wait for.
        error = (torch.diagonal(curvature) / count).sqrt()
        converged = bool((gradient.abs() <= ENOUGH * error).all())
        if converged or made >= ROUNDS or (work is not None and not work.left()):
            break
        while True:
            step = torch.linalg.solve(curvature + damping * identity, gradient)
            step *= min(1.0, LONGEST / float(step.abs().max()))
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
    plain = value + 0.5 * float(penalty @ theta**2)
    return Fit(laws, theta, plain, solved, fisher, penalty, count, converged, made)
