r"""Match the moments of what a model generates to those of the data, by a correction of the conditionals.

An autoregressive model learns every conditional from sites of the data, and when it generates, it is given sites of its
own. Small errors of 2000 conditionals add up along the way: means and correlations drift. So the chain is run once more,
step by step, and before a site is drawn, its conditional is given the least change with which the sites drawn so far and
this one have the moments of the data (:mod:`neurise.energies.moments`): those with the sites that its pairwise terms look
at, and with the directions in which the data vary most. The changes are linear in the visible sites.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Generator, Tensor

from neurise import conditionals
from neurise.categorical import draw, uniforms
from neurise.conditionals.base import Conditionals, Frame
from neurise.conditionals.committee import Together
from neurise.deadline import Work
from neurise.energies import moments
from neurise.energies.pairwise_regression import expanded
from neurise.energies.regressions import Fit, Sample, sample_of
from neurise.networks.pairwise_terms import PairwiseTerms, added
from neurise.networks.parts.plan import Plan, View
from neurise.networks.parts.walk import Walk
from neurise.rows import Rows
from neurise.walks import Planned

DRAWS = 2**14
"""Rows that are generated to match with."""
SHRINK = 2.5e-3
"""λ. Weights stay below a few, and moments of a few percent are matched to a tenth: see docs/quality.md."""
DIRECTIONS = 20
MOST_COLUMNS = 2**13
"""Features up to which directions are looked for: their second moments are a matrix of so many rows."""
SOON_FOUND = 2**10
"""Features up to which directions are looked for where the time is limited: to find them is one long piece of work."""
GOLDEN = (5**0.5 - 1) / 2


class MomentMatched(Conditionals):
    r"""Autoregressive conditionals with terms added to each step of the chain, :math:`\log \mu + c_u + C_u x` normalised.

    The terms correct the errors of the chain, so they are no part of the clean conditionals that a corrector asks for.
    """

    def __init__(self, inner: Conditionals, terms: PairwiseTerms) -> None:
        super().__init__()
        self.inner, self.terms, self.noise = inner, terms, inner.noise
        self.hide_noised, self.bytes_per_row = inner.hide_noised, inner.bytes_per_row
        self.bytes_per_walk, self.in_one_pass, self.walks_in = inner.bytes_per_walk, inner.in_one_pass, inner.walks_in
        self.register_buffer("ignored", inner.ignored, persistent=False)

    @property
    def clean(self) -> Conditionals:
        """Leave the correction out."""
        return self.inner.clean

    def log_conditional(self, t: Tensor, u: Tensor, x: Tensor, y: Tensor | None = None) -> Tensor:
        """Correct the steps of the chain, t = u, and leave every other answer as it is, (..., states)."""
        answer = self.inner.log_conditional(t, u, x, y)
        corrected = answer + self.terms(t, u, x, self.hidden(t), y).to(answer.dtype)
        return torch.where((t == u)[..., None], torch.log_softmax(corrected, dim=-1), answer)

    def plan(self, view: View) -> Plan | None:
        """Add the terms to the plan of the chain."""
        if self.inner.is_certain:  # which a plan knows nothing of
            return None
        plan, terms = self.inner.plan(view), self.terms.plan(view)
        return plan if plan is None or terms is None or view.sweep else added([plan, terms])

    def _walk_without_plan(
        self, x: Tensor, y: Tensor | None, cycle: Tensor, *, top: int, sweep: bool, precision: str
    ) -> Walk:
        inner = self.inner.walk(x, y, cycle, top=top, sweep=sweep, precision=precision)
        view = self.view(sweep=sweep)
        plan = None if view is None or sweep else self.terms.plan(view)
        if view is None or plan is None:
            return (
                inner if sweep else super()._walk_without_plan(x, y, cycle, top=top, sweep=sweep, precision=precision)
            )
        return Together((1.0, 1.0), (inner, Planned(plan, view, cycle, x, y, top=top)))

    def description(self) -> dict[str, Any]:
        """Describe the inner conditionals."""
        return {"answers": "moment_matched", "inner": self.inner.description()}

    @classmethod
    def build(cls, description: dict[str, Any], frame: Frame) -> MomentMatched:
        """Make the inner conditionals again."""
        inner = conditionals.build(description["inner"], frame)
        return cls(inner, PairwiseTerms(frame.noise.space, frame.noise.num_steps))


@torch.no_grad()
def match(
    inner: Conditionals,
    rows: Rows,
    constant: Tensor,
    *,
    generator: Generator,
    draws: int = DRAWS,
    shrink: float = SHRINK,
    directions: int = DIRECTIONS,
    work: Work | None = None,
) -> MomentMatched:
    """Correct autoregressive conditionals so that what they generate has the moments of the rows.

    Sites that the time does not reach, those that are generated last, keep the conditionals that they have.
    """
    work = work or Work()
    space, device = inner.noise.space, inner.device
    data = sample_of(rows, space.states, device)
    labels = None if rows.y is None else rows.spread(draws, generator=torch.Generator().manual_seed(0)).y
    varies = (
        (constant < 0).repeat_interleave(data.outcomes).to(device)
    )  # what never varies is hidden from the conditionals
    if work.seconds < math.inf and data.features.shape[1] > SOON_FOUND:
        directions = 0
    loop = Loop(inner, data, constant, _directions(data, directions) * varies[:, None], draws, labels)
    for u in reversed(range(space.sites)):
        if not work.left(done=1):  # of those that are begun
            break
        loop.step(u, shrink, generator, work)
    change = expanded(Fit(loop.weight, loop.bias), space.sites, space.states)
    with torch.device(device):
        terms = PairwiseTerms(space, inner.noise.num_steps)
    terms.pair.copy_(change.pair)
    terms.bias.copy_(change.bias)
    return MomentMatched(inner, terms.requires_grad_(False))


class Loop:
    """The chain on its way: rows of the model and of the data, and what they have along the directions so far."""

    def __init__(
        self,
        inner: Conditionals,
        data: Sample,
        constant: Tensor,
        axes: Tensor,
        draws: int,
        labels: Tensor | None,
    ) -> None:
        sites, self.inner = data.target.shape[1], data.outcomes
        self.data, self.axes = data, axes
        self.looked_at, self.constant = inner.looked_at().cpu(), constant.tolist()
        start = torch.zeros(sites, draws, dtype=torch.uint8, device=axes.device)
        y = None if labels is None else labels.to(axes.device)
        self.walk = inner.walk(start, y, torch.zeros(1, dtype=torch.int64, device=axes.device))
        self.features = data.features.new_zeros(draws, sites * self.inner)  # of the rows drawn, as the data have theirs
        self.along, self.data_along = (
            part.new_zeros(len(part), axes.shape[1]) for part in (self.features, data.features)
        )
        self.weight = axes.new_zeros(sites * self.inner, sites * self.inner)
        self.bias = axes.new_zeros(sites * self.inner)

    def step(self, u: int, shrink: float, generator: Generator, work: Work) -> None:
        """Match the conditional of site u, and draw it."""
        if self.constant[u] >= 0:
            token = torch.full((len(self.features),), self.constant[u], device=self.features.device)
        else:
            logits = self.walk.logits(u).to(self.features.dtype)
            token = drawn_evenly(logits + self._matched(u, logits, shrink, work), generator)
        self.walk.put(u, token)
        own = slice(u * self.inner, (u + 1) * self.inner)
        self.features[:, own] = self._encoded(token)
        self.along += self.features[:, own] @ self.axes[own]
        self.data_along += self.data.features[:, own] @ self.axes[own]

    def _matched(self, u: int, logits: Tensor, shrink: float, work: Work) -> Tensor:
        """Find the change of the conditional of site u, write it down, and return what it adds, (n, O)."""
        sites = torch.nonzero(self.looked_at[u, u + 1 :]).flatten() + u + 1
        columns = (sites[:, None] * self.inner + torch.arange(self.inner)).flatten().to(logits.device)
        # Like a spin's, the feature of a direction has a standard deviation of a half.
        spread = (self.data.weight @ self.data_along.pow(2) - (self.data.weight @ self.data_along).pow(2)).clamp(min=0)
        scale = torch.where(spread > 1e-12, 0.5 / spread.clamp(min=1e-12).sqrt(), 0.0)
        seen, known = (
            torch.cat([part.new_ones(len(part), 1), part[:, columns], along * scale], dim=1)
            for part, along in ((self.features, self.along), (self.data.features, self.data_along))
        )
        wanted = known.T @ (self.data.weight[:, None] * self.data.target[:, u])
        found = moments.correction(logits, seen, wanted, shrink=shrink, work=work)
        bias, pairs, along = found[:1], found[1 : 1 + len(columns)], found[1 + len(columns) :]
        lines, after = slice(u * self.inner, (u + 1) * self.inner), (u + 1) * self.inner
        self.weight[lines, after:] = (self.axes[after:] @ (scale[:, None] * along)).T
        self.weight[lines, columns] += pairs.T
        self.bias[lines] = bias[0]
        return seen @ found

    def _encoded(self, token: Tensor) -> Tensor:
        """Features of tokens, as :func:`sample_of` has them, (n, features)."""
        if self.inner == 1:
            return token[:, None].to(self.features) - 0.5
        return (token[:, None] == torch.arange(self.inner, device=token.device)).to(self.features) - 1 / self.inner


def drawn_evenly(logits: Tensor, generator: Generator) -> Tensor:
    """Draw tokens from logits (n, O), with levels that are spread evenly over rows whose laws are alike, (n,) tokens.

    Each row's draw follows its own law; together they have less of the noise that the next steps would be matched to.
    """
    full = torch.cat([torch.zeros_like(logits), logits], dim=-1) if logits.shape[-1] == 1 else logits
    law = torch.log_softmax(full.double(), dim=-1)
    place = torch.arange(len(law), device=law.device, dtype=torch.float64)
    tokens = torch.arange(law.shape[-1], device=law.device, dtype=torch.float64)
    order = (law.exp() @ tokens).argsort(stable=True)
    level = torch.empty_like(place)
    level[order] = (place * GOLDEN + uniforms(1, generator=generator)) % 1
    return draw(law, level)


def _directions(data: Sample, count: int) -> Tensor:
    """The directions in which features vary most, (columns, count), of the length of a row of ones."""
    columns = data.features.shape[1]
    if columns > MOST_COLUMNS or not count:
        return data.features.new_zeros(columns, 0)
    centred = data.features - data.weight @ data.features
    axes: Tensor = torch.linalg.eigh(centred.T @ (data.weight[:, None] * centred))[1]
    return axes[:, -min(count, columns) :] * math.sqrt(columns)
