r"""Match the moments of every class by itself, when those of all classes together are matched.

Errors that classes do not share cancel in moments of all of them. What is left is found class by class, by the problem of
:mod:`neurise.conditionals._matching` with the rows of one class alone: the mean of a site, and how it goes with the directions in
which the rows of the class vary most. The penalty is that of the rows which the class has, and which were drawn of it,

.. math:: \lambda_y = \Big(\frac1{N_y} + \frac1{n_y}\Big) \frac1{\tau^2},

so that a class of few rows stays near what all classes have in common.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import torch
from torch import Tensor
from torch.nn import functional

from neurise.conditionals._directions import directions_of
from neurise.conditionals.class_matched import ClassTerms
from neurise.deadline import Work
from neurise.energies import moments
from neurise.energies.regressions import Sample
from neurise.space import Space

FEWEST_OF_CLASS = 2**6
"""Rows drawn of each class at least: with more classes than that leaves room for, labels are not looked at."""
NEVER = 1e12
"""The penalty of a class that has no rows."""
STEPS = 3
"""Newton's steps: what is left of the moments is little."""


class ByClass:
    """What rows of the data and of the model have along the directions of their class so far, and what is found from it.

    The rows of the model are groups, one for each spread τ; in each of them every class has as many rows, one class after another.
    """

    def __init__(
        self,
        data: Sample,
        y: Tensor,
        classes: int,
        space: Space,
        varies: Tensor,
        spreads: Sequence[float],
        *,
        draws: int,
        directions: int,
    ) -> None:
        self.data, self.y, self.space, self.draws, self.inner = data, y, space, draws, data.outcomes
        self.features = data.features.T.contiguous()  # a site after another is asked for
        self.members = functional.one_hot(y, classes).to(data.weight)
        weight = self.members.T * data.weight
        self.share = weight.sum(1)  # of the rows, (classes,)
        self.weight = weight / self.share.clamp(min=1e-12)[:, None]  # of the rows within their class
        noise = (self.weight.double().square() / data.count.double()).sum(1) + 1 / draws
        self.shrink = data.weight.new_full((len(spreads), classes), math.inf)
        for number, spread in enumerate(spreads):
            if spread:
                self.shrink[number] = torch.where(self.share > 0, noise / spread**2, NEVER)
        self.axes = torch.stack([self._axes(kind, directions) for kind in range(classes)]) * varies[:, None]
        count = self.axes.shape[-1]
        self.seen = data.weight.new_zeros(len(spreads), classes, draws, count)
        self.known = data.weight.new_zeros(len(y), count)
        self.along = data.weight.new_zeros(len(spreads), *self.axes.shape)
        self.bias = data.weight.new_zeros(len(spreads), classes, len(varies))

    def _axes(self, kind: int, directions: int) -> Tensor:
        """Return the directions in which the rows of a class vary most, (columns, directions)."""
        own, data = torch.nonzero(self.y == kind).flatten(), self.data
        columns = data.features.shape[1]
        found = data.features.new_zeros(columns, min(directions, columns))
        most = min(found.shape[1], len(own) - 1)  # so few rows vary in no more
        if most > 0:
            features, weight = data.features[own], data.weight[own]
            part = replace(data, features=features, weight=weight / weight.sum())
            found[:, :most] = directions_of(part, most)
        return found

    @property
    def noise(self) -> float:
        """1/n, with n the number of independent rows of the data's own shares whose moments are as noisy as those of a group."""
        return float(self.share.double().square().sum()) / self.draws

    @property
    def weight_drawn(self) -> Tensor:
        """What each row of a group counts in moments of all classes, (classes · draws,)."""
        return (self.share / self.draws).repeat_interleave(self.draws)

    def matched(self, u: int, logits: Tensor, first: int, work: Work) -> Tensor:
        """Find the change of the conditional of site u from the group ``first`` on, and return what it adds, (groups, n, O)."""
        weight, lines = self.weight, slice(u * self.inner, (u + 1) * self.inner)
        target = self.features[lines] + 1 / max(2, self.inner)  # (O, N)
        mean, rate = weight @ self.known, weight @ target.T
        spread = weight @ (self.known - mean[self.y]).square()
        # Like a spin's, the feature of a direction has a standard deviation of a half.
        scale = torch.where(spread > 1e-12, 0.5 / spread.clamp(min=1e-12).sqrt(), 0.0)
        both = torch.stack([weight @ (self.known * part[:, None]) for part in target], dim=-1)  # (classes, K, O)
        slopes = scale[..., None] * (both - mean[..., None] * rate[:, None])
        wanted = torch.cat([rate[:, None], slopes], dim=1)
        drawn = (self.seen[first:] - mean[:, None]) * scale[:, None]
        drawn = torch.cat([torch.ones_like(drawn[..., :1]), drawn], dim=-1)
        whole = logits.view(len(drawn), len(scale), self.draws, -1)
        found = moments.correction(whole, drawn, wanted, shrink=self.shrink[first:], iterations=STEPS, work=work)
        found = found * (self.share > 0)[:, None, None]
        along = found[:, :, 1:] * scale[..., None]
        self.along[first:, :, lines] = along.mT
        self.bias[first:, :, lines] = found[:, :, 0] - (mean[..., None] * along).sum(-2)
        return (drawn @ found).view_as(logits)

    def put(self, u: int, features: Tensor) -> None:
        """Add what the tokens of site u, drawn as features (groups · n, O), have along the directions, and those of the data."""
        lines = slice(u * self.inner, (u + 1) * self.inner)
        axes, drawn = self.axes[:, lines], features.view(*self.seen.shape[:3], self.inner)
        self.seen += drawn @ axes
        for own, axis in zip(self.features[lines], axes.unbind(1), strict=True):
            self.known.addmm_(self.members * own[:, None], axis)

    def found(self, number: int) -> ClassTerms:
        """Return what each class gets by a spread."""
        with torch.device(self.axes.device):
            terms = ClassTerms(self.space, len(self.share), self.axes.shape[-1])
        terms.axes.data.copy_(self.axes)
        terms.along.data.copy_(self.along[number])
        terms.bias.data.copy_(self.bias[number])
        return terms.requires_grad_(False)
