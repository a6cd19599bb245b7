r"""Many small multinomial regressions at once: every site on a few others, each solved by Newton's method.

The logits of site u are :math:`\theta_u z_u`, where :math:`z_u` holds the base features and those of its parents. With two
states a step solves with the curvature :math:`\sum_n w_n v_n z_n z_n^\top`, :math:`v = \mu(1 - \mu)`. With more, one matrix
serves all outcomes: :math:`\tfrac12 \sum_n w_n z_n z_n^\top` is never less than the curvature (Böhning's bound), so that no
step overshoots.

**The penalty.** Of its few parents a site may need some strongly and others hardly at all. The terms with a parent, a block of d
numbers, have a Cauchy law of scale s beforehand (a normal law whose variance is not known, one for each block), cut off by a
normal law of variance 1/c, which costs

.. math:: \frac1{2N} \Bigl((1 + d) \log\bigl(1 + \lVert \theta_b \rVert^2 / s^2\bigr) + c\,\lVert \theta_b \rVert^2\Bigr)

nats per row: little more for large terms than for moderate ones, and so much for small ones that a parent which tells nothing does
no harm; c keeps the terms of sites that almost always agree from growing without end. Every step solves with the parabola
:math:`\tfrac12 \lambda_b \lVert \theta_b \rVert^2`, :math:`\lambda_b = \tfrac1N ((1 + d) / (s^2 + \lVert \theta_b \rVert^2) + c)`,
which lies above it and touches it where the step begins.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional

from neurise.batching import MEMORY_BUDGET
from neurise.energies.regressions import Sample

MENDING = 0.01
"""Share of the largest curvature that is added to one which has no factors."""
LONGEST = 2.0
"""No weight changes by more in one step: where a site is almost certain, Newton's steps overshoot."""
ROUNDING, OF_THE_LARGEST = 1e-7, 1e-5
"""A curvature beside the penalty, for directions in which there is none: sums in float32 may make it less than nothing. It
is a share of the largest curvature of the site, or so much at least."""
NOISE = 1e-6
"""Losses that differ by such a share are equal: they are sums in float32."""
FOR_BASE = 0.01
"""The penalty of a bias: λ N."""
AT_FIRST = 10.0
"""s² + ‖θ‖² of a block that is zero, as parents are when they join: they could not get away from there against the penalty."""
REFRESH = 4
"""Steps after which the penalty's parabola is drawn anew where one matrix serves for many steps."""
ON_GPU = 16
"""So many times the memory of a CPU's blocks."""


class Prior(NamedTuple):
    """How large terms are beforehand."""

    scale: float = 0.3  # s
    tail: float = 0.1  # c


FIRST = Prior()
"""The prior that is begun with."""


@dataclass(frozen=True)
class Design:
    """Rows, and the features that every site looks at besides those of its parents. Rows run along the last axis."""

    sample: Sample
    base: Tensor  # (n, B)
    prior: Prior = FIRST

    @cached_property
    def columns(self) -> Tensor:
        """Features of all sites, (sites · O, n)."""
        return self.sample.features.T.contiguous()

    @cached_property
    def target(self) -> Tensor:
        """What is to be explained, (sites, O, n)."""
        return self.sample.target.permute(1, 2, 0).contiguous()

    @cached_property
    def rows(self) -> float:
        """N: how many observations there are."""
        return float(self.sample.count.sum())

    def shrink(self, theta: Tensor) -> Tensor:
        """Return λ of every feature, (sites, B + K·O); of a parent that has only just joined it is that of a wide law."""
        base, outcomes = self.base.shape[1], self.sample.outcomes
        size = self._sizes(theta)
        tightness = (1 + outcomes**2) / (self.prior.scale**2 + size).masked_fill(size == 0, AT_FIRST)
        each = (tightness + self.prior.tail).repeat_interleave(outcomes, 1)
        return functional.pad(each, (base, 0), value=FOR_BASE) / self.rows

    def penalty(self, theta: Tensor) -> Tensor:
        """Return what the terms of each site cost, (sites,)."""
        size = self._sizes(theta)
        tight = (1 + self.sample.outcomes**2) * torch.log1p(size / self.prior.scale**2)
        terms = (tight + self.prior.tail * size).sum(1)
        fields = theta[:, :, : self.base.shape[1]].square().sum((1, 2))
        return 0.5 * (terms + FOR_BASE * fields) / self.rows

    def _sizes(self, theta: Tensor) -> Tensor:
        """Return the square of the length of every parent's block, (sites, K)."""
        outcomes = self.sample.outcomes
        blocks = theta[:, :, self.base.shape[1] :].reshape(len(theta), outcomes, -1, outcomes)
        return blocks.square().sum((1, 3))

    def with_prior(self, prior: Prior) -> Design:
        """Return the same rows with another penalty."""
        own = replace(self, prior=prior)
        vars(own).update({name: vars(self)[name] for name in ("columns", "target", "rows") if name in vars(self)})
        return own

    def blocks(self, sites: Tensor, parents: int) -> Iterator[Tensor]:
        """Cut sites into parts whose features fit into memory."""
        budget = MEMORY_BUDGET * (ON_GPU if self.base.is_cuda else 1)
        each = (
            4 * len(self.base) * (2 * (parents * self.sample.outcomes + self.base.shape[1]) + 6 * self.sample.outcomes)
        )
        size = max(1, budget // each)
        for start in range(0, len(sites), size):
            yield sites[start : start + size]

    def features(self, chosen: Tensor) -> Tensor:
        """Features of so many sites, (sites, B + K·O, n); those of parents that are not there are 0."""
        outcomes = self.sample.outcomes
        own = (chosen.clamp(min=0)[..., None] * outcomes + torch.arange(outcomes, device=chosen.device)).flatten(1)
        found = torch.empty(len(chosen), self.base.shape[1] + own.shape[1], len(self.base), device=chosen.device)
        found[:, : self.base.shape[1]] = self.base.T
        found[:, self.base.shape[1] :] = self.columns[own]
        gone = (chosen < 0).repeat_interleave(outcomes, 1)
        found[:, self.base.shape[1] :].masked_fill_(gone[..., None], 0.0)
        return found

    def logits(self, chosen: Tensor, theta: Tensor, part: Tensor) -> Tensor:
        """Logits of some sites, (part, O, n)."""
        return torch.bmm(theta[part], self.features(chosen[part]))

    def scores(self, chosen: Tensor, theta: Tensor, only: Tensor | None = None, before: Tensor | None = None) -> Tensor:
        """Nats of a row at each site, (sites,); ``before`` holds those that have not changed."""
        every = torch.arange(len(chosen), device=chosen.device) if only is None else only
        found = chosen.new_zeros(len(chosen), dtype=theta.dtype) if before is None else before.clone()
        for part in self.blocks(every, chosen.shape[1]):
            found[part] = weighted(nats(self.logits(chosen, theta, part), self.target[part]), self.weights(part))
        return found

    def total(self, chosen: Tensor, theta: Tensor) -> float:
        """Nats of a row over all sites."""
        return float(self.scores(chosen, theta).double().sum())

    def weights(self, part: Tensor) -> Tensor:
        """Return the weights of the rows, (n,); or those for each of some sites, (part, 1, n), where targets are missing."""
        weight, there = self.sample.weight, self.sample.there
        return weight if there is None else (weight * there.T[part])[:, None]

    def costs(self, chosen: Tensor, theta: Tensor) -> Tensor:
        r"""Nats per row that the loss of each parent would cost, to second order, (sites, K).

        It is :math:`\tfrac12 \theta^\top C^{-1} \theta` with C the block of the parent in the inverse curvature.
        """
        outcomes, found = self.sample.outcomes, []
        base, parents = self.base.shape[1], chosen.shape[1]
        for part in self.blocks(torch.arange(len(chosen), device=chosen.device), parents):
            features = self.features(chosen[part])
            logits, shrink = torch.bmm(theta[part], features), self.shrink(theta[part])
            curvature = self.curvature(features, logits, self.weights(part), shrink)
            inverse = torch.linalg.inv(curvature.double())[:, base:, base:]
            blocks = inverse.view(len(part), parents, outcomes, parents, outcomes).diagonal(
                dim1=1, dim2=3
            )  # (s, O, O, K)
            own = (
                theta[part][:, :, base:].reshape(len(part), outcomes, parents, outcomes).double().permute(0, 2, 3, 1)
            )  # (s, K, in, out)
            solved = torch.linalg.solve(blocks.permute(0, 3, 1, 2), own)
            found.append(0.5 * (own * solved).sum((2, 3)))
        return torch.cat(found).to(theta.dtype)

    def curvature(self, features: Tensor, logits: Tensor, weight: Tensor, shrink: Tensor) -> Tensor:
        """Return the curvature of each site's regression, (sites, B + K·O, B + K·O)."""
        bend = 0.5 * weight if self.sample.outcomes > 1 else weight * torch.sigmoid(logits) * torch.sigmoid(-logits)
        curvature = torch.bmm(features * bend, features.transpose(1, 2))
        most = curvature.diagonal(dim1=1, dim2=2).amax(1, keepdim=True)
        return curvature + torch.diag_embed(shrink + ROUNDING + OF_THE_LARGEST * most)


def nats(logits: Tensor, target: Tensor) -> Tensor:
    """Negative log-likelihoods of logits (sites, O, n), (sites, n)."""
    if target.shape[1] == 1:
        return (functional.softplus(logits) - logits * target).squeeze(1)
    return torch.logsumexp(logits, dim=1) - (logits * target).sum(1)


def weighted(values: Tensor, weight: Tensor) -> Tensor:
    """Sum values (sites, n) over rows with their weights, those of :meth:`Design.weights`, (sites,)."""
    return values @ weight if weight.dim() == 1 else (values * weight.squeeze(1)).sum(1)


def solve(design: Design, chosen: Tensor, start: Tensor | None, *, rounds: int, only: Tensor | None = None) -> Tensor:
    """Solve the regressions of all sites, or of some, (sites, O, B + K·O), by so many Newton steps.

    A step that leads uphill, as it may where a site is almost certain, is taken back and made a quarter as long.
    """
    every = torch.arange(len(chosen), device=chosen.device) if only is None else only
    found = []
    for part in design.blocks(every, chosen.shape[1]):
        features = design.features(chosen[part])
        theta = (
            features.new_zeros(len(part), design.sample.outcomes, features.shape[1]) if start is None else start[part]
        )
        found.append(_solved(design, features, design.target[part], design.weights(part), theta, rounds))
    return torch.cat(found)


def factored(curvature: Tensor) -> Tensor:
    """Return Cholesky's factors of many curvatures, (sites, k, k).

    Where hundreds of thousands of rows hardly vary, sums in float32 may have a direction of negative curvature. What is added there
    makes the step shorter, and leaves the point that it leads to as it is.
    """
    factor: Tensor
    factor, failed = torch.linalg.cholesky_ex(curvature)
    if bool(failed.any()):
        more = MENDING * curvature.diagonal(dim1=1, dim2=2).amax(1).clamp(min=ROUNDING)
        mended = curvature + more[:, None, None] * torch.eye(curvature.shape[1], device=curvature.device)
        factor = torch.where((failed > 0)[:, None, None], torch.linalg.cholesky_ex(mended)[0], factor)
    return factor


def _solved(design: Design, features: Tensor, target: Tensor, weight: Tensor, theta: Tensor, rounds: int) -> Tensor:
    """Solve the regressions of a part of the sites, from ``theta`` on."""
    binary, factor = design.sample.outcomes == 1, features.new_zeros(0)
    rounds = rounds if binary else 4 * rounds  # a bound on the curvature makes shorter steps
    shrink = design.shrink(theta)
    best, least = theta, theta.new_full((len(theta), 1, 1), torch.inf)  # the lowest point so far, and its loss
    length, change = torch.ones_like(least), torch.zeros_like(theta)
    for step in range(rounds + 1):
        logits = torch.bmm(theta, features)
        # A parent that has only just joined may climb over the edge of the penalty.
        loss = (weighted(nats(logits, target), weight) + design.penalty(theta))[:, None, None]
        down = (loss <= least * (1 + NOISE)) if step > 1 else torch.ones_like(loss, dtype=torch.bool)
        best, least = torch.where(down, theta, best), torch.where(down, loss, least)
        length = torch.where(down, 1.0, length / 4)
        if step == rounds:
            break
        law = torch.sigmoid(logits) if binary else torch.softmax(logits, dim=1)
        unexplained = (target - law) * weight
        if binary or step % REFRESH == 0:
            shrink = design.shrink(theta)
            factor = factored(design.curvature(features, logits, weight, shrink))
        gradient = torch.bmm(features, unexplained.transpose(1, 2)) - (shrink[:, None] * theta).transpose(1, 2)
        wanted = torch.cholesky_solve(gradient, factor).transpose(1, 2)
        change = torch.where(down, wanted, change)  # what was taken back is tried again, shorter
        theta = best + length * change * (LONGEST / change.abs().amax((1, 2), keepdim=True).clamp(min=LONGEST))
    return best
