r"""Many small multinomial regressions at once: every site on a few others, each solved by Newton's method.

The logits of site u are :math:`\theta_u z_u`, where :math:`z_u` holds the base features and those of its parents. With two
states a step solves with the curvature :math:`\sum_n w_n v_n z_n z_n^\top`, :math:`v = \mu(1 - \mu)`. With more, one matrix
serves all outcomes: :math:`\tfrac12 \sum_n w_n z_n z_n^\top` is never less than the curvature (Böhning's bound), so that no
step overshoots.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor
from torch.nn import functional

from neurise.batching import MEMORY_BUDGET
from neurise.energies.regressions import Sample

LONGEST = 2.0
"""No weight changes by more in one step: where a site is almost certain, Newton's steps overshoot."""
ROUNDING = 1e-7
"""A curvature beside the penalty, for directions in which there is none."""
ON_GPU = 16
"""So many times the memory of a CPU's blocks."""


@dataclass(frozen=True)
class Design:
    """Rows, and the features that every site looks at besides those of its parents. Rows run along the last axis."""

    sample: Sample
    base: Tensor  # (n, B)
    prior: float = 0.3  # c: a penalty of c/2N on the square of every weight, as if they were normal with variance 1/c

    @cached_property
    def columns(self) -> Tensor:
        """Features of all sites, (sites · O, n)."""
        return self.sample.features.T.contiguous()

    @cached_property
    def target(self) -> Tensor:
        """What is to be explained, (sites, O, n)."""
        return self.sample.target.permute(1, 2, 0).contiguous()

    @property
    def shrink(self) -> float:
        """Return c/N."""
        return self.prior / float(self.sample.count.sum())

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
            each = nats(self.logits(chosen, theta, part), self.target[part])
            weight = self.weights(part)
            found[part] = each @ weight if weight.dim() == 1 else (each * weight.squeeze(1)).sum(1)
        return found

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
            curvature = self.curvature(features, torch.bmm(theta[part], features), self.weights(part))
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

    def curvature(self, features: Tensor, logits: Tensor, weight: Tensor) -> Tensor:
        """Return the curvature of each site's regression, (sites, B + K·O, B + K·O)."""
        bend = 0.5 * weight if self.sample.outcomes > 1 else weight * torch.sigmoid(logits) * torch.sigmoid(-logits)
        curvature = torch.bmm(features * bend, features.transpose(1, 2))
        return curvature + torch.eye(features.shape[1], device=features.device) * (self.shrink + ROUNDING)


def nats(logits: Tensor, target: Tensor) -> Tensor:
    """Negative log-likelihoods of logits (sites, O, n), (sites, n)."""
    if target.shape[1] == 1:
        return (functional.softplus(logits) - logits * target).squeeze(1)
    return torch.logsumexp(logits, dim=1) - (logits * target).sum(1)


def solve(design: Design, chosen: Tensor, start: Tensor | None, *, rounds: int, only: Tensor | None = None) -> Tensor:
    """Solve the regressions of all sites, or of some, (sites, O, B + K·O), by so many Newton steps."""
    outcomes = design.sample.outcomes
    every = torch.arange(len(chosen), device=chosen.device) if only is None else only
    found = []
    for part in design.blocks(every, chosen.shape[1]):
        features, target, weight = design.features(chosen[part]), design.target[part], design.weights(part)
        theta = features.new_zeros(len(part), outcomes, features.shape[1]) if start is None else start[part]
        factor = features.new_zeros(0)
        for step in range(rounds if outcomes == 1 else 4 * rounds):  # a bound on the curvature makes shorter steps
            logits = torch.bmm(theta, features)
            law = torch.sigmoid(logits) if outcomes == 1 else torch.softmax(logits, dim=1)
            unexplained = (target - law) * weight
            gradient = torch.bmm(features, unexplained.transpose(1, 2)) - design.shrink * theta.transpose(1, 2)
            if outcomes == 1 or step == 0:
                factor = torch.linalg.cholesky(design.curvature(features, logits, weight))
            change = torch.cholesky_solve(gradient, factor).transpose(1, 2)
            theta = theta + change * (LONGEST / change.abs().amax((1, 2), keepdim=True).clamp(min=LONGEST))
        found.append(theta)
    return torch.cat(found)
