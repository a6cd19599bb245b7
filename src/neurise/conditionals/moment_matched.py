r"""Match the moments of what a model generates to those of the data, by a correction of the conditionals.

An autoregressive model learns every conditional from sites of the data, and when it generates, it is given sites of its
own. Small errors of 2000 conditionals add up along the way: means and correlations drift. So the chain is run once more,
step by step, and before a site is drawn, its conditional is given the least change with which the sites drawn so far and
this one have the moments of the data, but for the noise of these (:mod:`neurise.conditionals._matching`): those with the
sites that its pairwise terms look at, and with the directions in which the data vary most. Where rows have labels, the means
of each class and its own directions follow (:mod:`neurise.conditionals._class_matching`). The changes are linear in the visible
sites.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Generator, Tensor

from neurise import conditionals
from neurise.conditionals._class_matching import FEWEST_OF_CLASS, ByClass
from neurise.conditionals._directions import directions_of
from neurise.conditionals._matching import DIRECTIONS, DRAWS_PER_ROW, Loop, enough_draws
from neurise.conditionals.base import Conditionals, Frame
from neurise.conditionals.class_matched import ClassMatched, ClassTerms, Matched
from neurise.conditionals.committee import Together
from neurise.deadline import Work
from neurise.energies.pairwise_regression import expanded
from neurise.energies.regressions import Fit, Sample, sample_of
from neurise.networks.pairwise_terms import PairwiseTerms, added
from neurise.networks.parts.layers import one_hot
from neurise.networks.parts.plan import Plan, View
from neurise.networks.parts.walk import Walk
from neurise.rows import Rows
from neurise.walks import Planned

ROOM_ON_GPU, ROOM, FEWEST = 2**35, 2**31, 2**7
"""Bytes that rows on their way may keep, and how many rows there are at least. Fixed: a seed gives the same on any device."""
SPREAD = 0.16
"""τ where nobody says which."""


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

    def log_conditionals(self, x: Tensor, y: Tensor | None = None) -> Tensor:
        """Correct all sites at once where the inner conditionals come in one pass, (n, sites, states)."""
        if not self.inner.in_one_pass:
            return super().log_conditionals(x, y)
        answer, (sites, states) = self.inner.log_conditionals(x, y), self.terms.bias.shape
        place = torch.arange(sites, device=x.device)
        sees = (place[:, None] < place) & ~self.ignored
        pair = self.terms.pair.view(sites, states, sites, states) * sees[:, None, :, None]
        seen = one_hot(x, states, pair.dtype).flatten(1)
        change = (seen @ pair.flatten(2).flatten(0, 1).T).view(-1, sites, states) + self.terms.bias
        return torch.log_softmax(answer + change.to(answer.dtype), dim=-1)

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
    spread: float = SPREAD,
    draws: int | None = None,
    directions: int = DIRECTIONS,
    work: Work | None = None,
) -> MomentMatched | ClassMatched:
    """Correct autoregressive conditionals so that what they generate has the moments of the rows, to within their noise.

    Sites that the time does not reach, those that are generated last, keep the conditionals that they have.
    """
    classes = 0 if rows.y is None else int(rows.y.max()) + 1
    data = sample_of(rows, inner.noise.space.states, inner.device)
    options: dict[str, Any] = {"generator": generator, "draws": draws, "directions": directions, "work": work}
    found = match_each(inner, rows, data, constant, [spread], classes=classes, **options)[0]
    return corrected(inner, found.fit, found.by_class)


@torch.no_grad()
def match_each(
    inner: Conditionals,
    rows: Rows,
    data: Sample,
    constant: Tensor,
    spreads: list[float],
    *,
    generator: Generator,
    draws: int | None = None,
    shared: bool = False,
    classes: int = 0,
    directions: int = DIRECTIONS,
    work: Work | None = None,
) -> list[Matched]:
    """Find the correction for each of several spreads τ, in one run of the chain.

    Each has rows of its own, so many as ``draws`` says; where they are ``shared``, as many as the data have. The moments of each
    of so many ``classes`` are matched where rows have labels, and there are enough of them for each class.
    """
    work, sites = work or Work(), inner.noise.space.sites
    count = enough_draws(data, 1 if shared else DRAWS_PER_ROW) if draws is None else draws
    if inner.bytes_per_walk:  # all rows are on their way at once
        room = ROOM_ON_GPU if inner.device.type == "cuda" else ROOM
        count = min(count, max(FEWEST, room // (inner.bytes_per_walk * len(spreads))))
    varies = (constant < 0).repeat_interleave(data.outcomes).to(inner.device)  # what never varies is hidden
    labels, by_class = None, None
    if rows.y is not None and classes and count // classes >= FEWEST_OF_CLASS:
        y, options = rows.y[data.place.to(rows.y.device)].to(inner.device).long(), {"directions": directions}
        by_class = ByClass(data, y, classes, inner.noise.space, varies, spreads, draws=count // classes, **options)
        labels = torch.arange(classes).repeat_interleave(by_class.draws)
        count = len(labels)
    elif rows.y is not None:  # each group has the labels that the data have
        labels = rows.spread(count, generator=torch.Generator().manual_seed(0)).y
    axes = directions_of(data, directions) * varies[:, None]
    loop = Loop(inner, data, constant, axes, spreads, count, labels, by_class)
    for u in reversed(range(sites)):
        if not work.left(done=1):  # of those that are begun
            break
        loop.step(u, generator, work)
    return loop.found()


def corrected(inner: Conditionals, change: Fit, by_class: ClassTerms | None = None) -> MomentMatched | ClassMatched:
    """Add terms that were found for the features of sites, and those of each class if there are any."""
    space = inner.noise.space
    with torch.device(inner.device):
        terms = PairwiseTerms(space, inner.noise.num_steps)
    found = expanded(change, space.sites, space.states)
    terms.pair.data.copy_(found.pair)
    terms.bias.data.copy_(found.bias)
    whole = MomentMatched(inner, terms.requires_grad_(False))
    return whole if by_class is None else ClassMatched(whole, by_class)
