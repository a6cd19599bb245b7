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
from neurise.energies.exact_laws import ExactLaws
from neurise.energies.family import Family

ENOUGH = 0.05
"""Share of its standard error that a moment may be off by in the end: the error grows by a thousandth."""
ROUNDS = 60
LONGEST = 0.5
"""No parameter changes by more in one step: far away the curvature of the draws says nothing."""
DAMPED, MORE, MOST_DAMPED = 1e-3, 10.0, 1e6
"""What is added to the curvature once a step has not led up, how it grows, and where the search ends."""
PER_PARAMETER, LEAST_DRAWS, MOST_DRAWS = 20, 2000, 20_000
"""Draws that the curvature is estimated from."""
LOOSE = 1e-3
"""Fields have a penalty too, so weak that it matters only where a state never occurs."""
SMOOTH = 1e-6
"""A curvature for directions in which the draws have none."""


@dataclass(frozen=True)
class Fit:
    """The parameters, what is known of them, and whether the moments agree."""

    family: Family
    theta: Tensor  # (size,)
    value: float  # mean log-likelihood of the rows, without the penalty
    fisher: Tensor  # (size, size)
    penalty: Tensor  # (size,)
    count: float  # N
    converged: bool
    rounds: int

    def covariance(self) -> Tensor:
        r"""Return the covariance of the estimate, :math:`(N F + c)^{-1}`, given the graph."""
        return torch.linalg.inv(self.fisher + torch.diag(self.penalty)) / self.count


def fit(
    family: Family,
    laws: ExactLaws,
    mean: Tensor,
    shares: Tensor,
    count: float,
    *,
    prior: float,
    start: Tensor | None = None,
    seed: int = 0,
    work: Work | None = None,
) -> Fit:
    """Maximise the likelihood of rows with such a mean of the features; ``prior`` is c, and ``shares`` those of the classes."""
    penalty = torch.full((family.size,), prior / count, dtype=torch.float64)
    penalty[: family.num_fields] = LOOSE / count
    theta = torch.zeros(family.size, dtype=torch.float64) if start is None else start.clone()
    rng = np.random.default_rng(seed)
    draws = min(MOST_DRAWS, max(LEAST_DRAWS, PER_PARAMETER * family.size))

    def height(at: Tensor) -> tuple[float, Tensor]:
        value, gradient = float(at @ mean), mean.clone()
        for kind, share in enumerate(shares.tolist()):
            if share:
                log_z, moments = laws.value(at, kind)
                value -= share * log_z
                gradient -= share * moments
        return value - 0.5 * float(penalty @ at**2), gradient - penalty * at

    value, gradient = height(theta)
    converged, made, damping = False, 0, 0.0
    identity = torch.eye(family.size, dtype=torch.float64)
    while True:
        samples = [laws.draw(theta, kind, max(2, round(draws * share)), rng) for kind, share in enumerate(shares.tolist())]
        fisher = family.covariance(samples, shares)
        curvature = fisher + torch.diag(penalty + SMOOTH)
        # Where a moment does not vary, neither in the law nor by chance, there is nothing to wait for.
        error = (torch.diagonal(curvature) / count).sqrt()
        converged = bool((gradient.abs() <= ENOUGH * error).all())
        if converged or made >= ROUNDS or (work is not None and not work.left()):
            break
        while True:
            step = torch.linalg.solve(curvature + damping * identity, gradient)
            step *= min(1.0, LONGEST / float(step.abs().max()))
            further, slope = height(theta + step)
            if further >= value + 1e-4 * float(step @ gradient):
                break
            damping = max(DAMPED, damping) * MORE
            if damping > MOST_DAMPED:
                break
        if damping > MOST_DAMPED:  # the rise is below the rounding of log Z: this is the top
            break
        theta, value, gradient, made = theta + step, further, slope, made + 1
        damping = damping / MORE if damping > DAMPED else 0.0
    plain = value + 0.5 * float(penalty @ theta**2)
    return Fit(family, theta, plain, fisher, penalty, count, converged, made)
