r"""Run a chain once more, and find at every step the change that the moments of the data ask for and their noise allows.

The weights w of the change at a site minimise

.. math:: -\tfrac1n \ell(w) + \tfrac\lambda2 \lVert w \rVert^2, \qquad
   \lambda = \Big(\frac1N + \frac1n\Big) \frac1{\tau^2},

where :math:`\ell` is the problem of :mod:`neurise.energies.moments`, N the number of rows of the data and n the number of rows
drawn. It is the mode of a posterior: the moments of N rows are as noisy as the gradient of a likelihood of N rows, and
before they were seen, a weight was 0 ± τ. A moment of curvature h has the standard error :math:`s = \sqrt{h\,(1/N + 1/n)}`,
an error of typical size :math:`\sigma = h\,\tau` is looked for, and the share

.. math:: \frac{\sigma^2}{\sigma^2 + s^2} = \frac{h}{h + \lambda}

of what is seen is mended. At the minimum the moments are off by :math:`\lambda w` exactly. For τ → 0 nothing is changed; for
τ → ∞, or for ever more rows, the moments are matched. Features are centred, so that the constant has the means to itself.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Generator, Tensor

from neurise.categorical import draw, uniforms
from neurise.conditionals._class_matching import ByClass
from neurise.conditionals.base import Conditionals
from neurise.conditionals.class_matched import Matched
from neurise.deadline import Work
from neurise.energies import moments
from neurise.energies.regressions import Fit, Sample

DRAWS, FEWEST_DRAWS = 2**12, 2**9
"""Rows that are generated to match with per ``DRAWS_PER_ROW``, at most and at least."""
DRAWS_PER_ROW = 4
"""Rows drawn per row of the data: their noise is then little beside that of the data."""
DIRECTIONS = 20
GOLDEN = (5**0.5 - 1) / 2


class Loop:
    """The chain on its way: rows of the model and of the data, and what they have along the directions so far.

    The rows of the model are groups of equal size, one for each spread τ, one group after another. With ``by_class`` the
    moments of each class are matched as well.
    """

    def __init__(
        self,
        inner: Conditionals,
        data: Sample,
        constant: Tensor,
        axes: Tensor,
        spreads: Sequence[float],
        draws: int,
        labels: Tensor | None,
        by_class: ByClass | None = None,
    ) -> None:
        sites, self.inner = data.target.shape[1], data.outcomes
        self.data, self.axes, self.draws, self.by_class = data, axes, draws, by_class
        self.looked_at, self.constant = inner.looked_at().cpu(), constant.tolist()
        self.share = None if by_class is None else by_class.weight_drawn
        noise = data.noise + (1 / draws if by_class is None else by_class.noise)
        self.shrink = [noise / spread**2 if spread else math.inf for spread in spreads]
        total = len(spreads) * draws
        start = torch.zeros(sites, total, dtype=torch.uint8, device=axes.device)
        y = None if labels is None else labels.to(axes.device).repeat(len(spreads))
        self.walk = inner.walk(start, y, torch.zeros(1, dtype=torch.int64, device=axes.device))
        self.features = data.features.new_zeros(total, sites * self.inner)  # of the rows drawn, as the data have theirs
        self.along, self.data_along = (
            part.new_zeros(len(part), axes.shape[1]) for part in (self.features, data.features)
        )
        self.weight = axes.new_zeros(len(spreads), sites * self.inner, sites * self.inner)
        self.bias = axes.new_zeros(len(spreads), sites * self.inner)

    def groups(self) -> list[slice]:
        """Return where the rows of each spread are."""
        return [slice(number * self.draws, (number + 1) * self.draws) for number in range(len(self.shrink))]

    @property
    def _shape(self) -> tuple[int, int]:
        """How many groups are drawn evenly, each by itself, and how many rows there are in each."""
        if self.by_class is None:
            return len(self.shrink), self.draws
        return len(self.shrink) * len(self.by_class.share), self.by_class.draws

    def found(self) -> list[Matched]:
        """Return what has been found so far, for each spread."""
        found = list[Matched]()
        for number, own in enumerate(self.groups()):
            classes = None if self.by_class is None else self.by_class.found(number)
            found.append(Matched(Fit(self.weight[number], self.bias[number]), self.features[own], classes))
        return found

    def step(self, u: int, generator: Generator, work: Work) -> None:
        """Match the conditional of site u, and draw it."""
        if self.constant[u] >= 0:
            token = torch.full((len(self.features),), self.constant[u], device=self.features.device)
        else:
            logits = self.walk.logits(u).to(self.features.dtype)
            change = self._matched(u, logits, work)
            token = drawn_evenly((logits + change).view(*self._shape, -1), generator).flatten()
        self.walk.put(u, token)
        own = slice(u * self.inner, (u + 1) * self.inner)
        self.features[:, own] = self._encoded(token)
        if self.by_class is not None:
            self.by_class.put(u, self.features[:, own])
        self.along += self.features[:, own] @ self.axes[own]
        self.data_along += self.data.features[:, own] @ self.axes[own]

    def _matched(self, u: int, logits: Tensor, work: Work) -> Tensor:
        """Find the change of the conditional of site u for each group, write it down, and return what it adds, (n, O)."""
        weight, target, after = self.data.weight, self.data.target[:, u], (u + 1) * self.inner
        sites = torch.nonzero(self.looked_at[u, u + 1 :]).flatten() + u + 1
        columns = (sites[:, None] * self.inner + torch.arange(self.inner)).flatten().to(logits.device)
        # Like a spin's, the feature of a direction has a standard deviation of a half.
        spread = weight @ (self.data_along - weight @ self.data_along).pow(2)
        scale = torch.where(spread > 1e-12, 0.5 / spread.clamp(min=1e-12).sqrt(), 0.0)
        known = torch.cat([self.data.features[:, columns], self.data_along * scale], dim=1)
        centre = weight @ known
        wanted = torch.cat([known.new_ones(len(known), 1), known - centre], dim=1).T @ (weight[:, None] * target)
        lines, added = slice(u * self.inner, after), torch.zeros_like(logits)
        # A spread of 0 changes nothing, and is the first if it is there at all.
        first = sum(shrink == math.inf for shrink in self.shrink)
        own = slice(first * self.draws, None)
        if own.start == len(logits):
            return added
        groups = (len(self.shrink) - first, self.draws, -1)
        seen = torch.cat([self.features[own][:, columns], self.along[own] * scale], dim=1) - centre
        seen = torch.cat([seen.new_ones(len(seen), 1), seen], dim=1).view(groups)
        shrink = seen.new_tensor(self.shrink[first:])
        found = moments.correction(logits[own].view(groups), seen, wanted, shrink=shrink, weight=self.share, work=work)
        pairs, along = found[:, 1 : 1 + len(columns)], found[:, 1 + len(columns) :]
        self.weight[first:, lines, after:] = (self.axes[after:] @ (scale[:, None] * along)).mT
        self.weight[first:, lines, columns] += pairs.mT
        self.bias[first:, lines] = found[:, 0] - centre @ found[:, 1:]
        added[own] = (seen @ found).flatten(0, 1)
        if self.by_class is not None:
            added[own] += self.by_class.matched(u, logits[own] + added[own], first, work)
        return added

    def _encoded(self, token: Tensor) -> Tensor:
        """Features of tokens, as :func:`sample_of` has them, (n, features)."""
        if self.inner == 1:
            return token[:, None].to(self.features) - 0.5
        return (token[:, None] == torch.arange(self.inner, device=token.device)).to(self.features) - 1 / self.inner


def enough_draws(data: Sample, per_row: int) -> int:
    """Return how many rows to draw: so many per row of the data, but neither very few nor very many."""
    return per_row * int(min(DRAWS, max(FEWEST_DRAWS, math.ceil(1 / data.noise))))


def drawn_evenly(logits: Tensor, generator: Generator) -> Tensor:
    """Draw tokens from logits (groups, n, O), with levels spread evenly over rows of a group whose laws are alike, (groups, n).

    Each row's draw follows its own law; together they have less of the noise that the next steps would be matched to.
    """
    full = torch.cat([torch.zeros_like(logits), logits], dim=-1) if logits.shape[-1] == 1 else logits
    law = torch.log_softmax(full.double(), dim=-1)
    place = torch.arange(law.shape[1], device=law.device, dtype=torch.float64)
    tokens = torch.arange(law.shape[-1], device=law.device, dtype=torch.float64)
    order = (law.exp() @ tokens).argsort(dim=1, stable=True)
    level = (place * GOLDEN + uniforms(len(law), generator=generator)[:, None]) % 1
    return draw(law, torch.empty_like(level).scatter_(1, order, level))
