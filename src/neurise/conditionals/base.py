r"""The joint of the house: whoever knows :math:`\mu_t(x_u \mid x_{-u})` drives samplers, likelihoods and exact laws.

Everything above asks this question and knows nothing of networks; everything below is one way to answer it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, NamedTuple, Self

import torch
from torch import Tensor, nn

from neurise.batching import CACHE, MEMORY_BUDGET, ON_GPU, batches, budget_on
from neurise.networks.parts.plan import Plan, View
from neurise.networks.parts.walk import Walk
from neurise.noise.base import SiteNoise
from neurise.walks import Planned, Recomputed, log_law

DRAWN = 32
"""Bytes of a token and of the random numbers that it is drawn from."""


@dataclass(frozen=True)
class Frame:
    """What the parts of one model share: the chain, the number of classes, and the sites that never vary."""

    noise: SiteNoise
    classes: int
    constant: Tensor  # (sites,): the only token of a site, or −1; on the device of the model

    def in_order(self, order: Sequence[int]) -> Frame:
        """Return the frame of a chain that takes the sites in another order."""
        noise = self.noise
        if noise.space.sizes is not None:
            noise = replace(noise, space=noise.space.in_order(order))  # type: ignore[type-var]
        return replace(self, noise=noise, constant=self.constant[list(order)])


class Certain(NamedTuple):
    """Answers that need no network: which sites are certain, and their relative logits in every cycle."""

    sites: tuple[bool, ...]
    logits: Tensor  # (cycles, sites, outputs) float64


class Conditionals(nn.Module, ABC):
    r"""Something that knows :math:`\mu_t(x_u \mid x_{-u})` along a chain that noises one site per step.

    **Writing one.** A way to answer is one file in ``conditionals/`` whose class bears the file's name. It writes
    ``log_conditional``, the reference form, and ``description``/``build``, says by ``noise``, ``hide_noised`` and
    ``ignored`` what it looks at, and keeps what it has learnt as
    parameters and buffers. It can then be sampled from, scored, clamped, written out exactly, corrected by sweeps, put into a
    :class:`~neurise.conditionals.committee.Committee`, saved and loaded. A faster form of ``log_conditionals`` or ``walk`` has
    the same signature, and a test ties it to the default here.
    """

    noise: SiteNoise
    hide_noised: bool  # whether steps do not look at sites that hard noise has erased
    ignored: Tensor  # (sites,) booleans: sites that no step looks at
    bytes_per_row: int  # estimate of the memory of one row in one evaluation
    bytes_per_walk: int = 0  # what a walk keeps of one row beyond that, until the row is done
    in_one_pass: bool = False  # whether one evaluation answers for all sites of a row
    walks_in: str = "float32"  # the numbers that walks on a GPU compute with where nobody asks for others
    has_clean: bool = False  # whether ``clean`` knows the data's own conditionals without having been taught them
    can_sweep: bool = True  # whether it answers from both sides of a site, as a corrector at time 0 asks
    is_certain: bool = False  # whether some sites are answered without a plan, see :meth:`certain`
    laid_out: Mapping[bool, tuple[View, Plan | None]] = MappingProxyType({})  # of the chain, and of sweeps

    @abstractmethod
    def log_conditional(self, t: Tensor, u: Tensor, x: Tensor, y: Tensor | None = None) -> Tensor:
        r"""Return :math:`\log \mu_t(x_u = a \mid x_{-u}, y)` for every a, (..., states); t, u, y broadcast against x."""

    def log_partial(self, u: Tensor, x: Tensor, missing: Tensor, y: Tensor | None = None) -> Tensor | None:
        r"""Return :math:`\log \mu_0(x_u = a \mid x_o)` from the values o of each row that are there, (n, states).

        u is (n,), x and ``missing`` are (n, sites). It is what a network learnt that was taught clean conditionals of rows
        with gaps. None, the default: it can only be had by a sum over what is missing.
        """
        return None

    def hidden(self, t: Tensor) -> Tensor:
        """Return which sites, besides u, the conditional of step t does not look at, (..., sites) booleans."""
        ignored = self.ignored.expand(*t.shape, -1)
        return self.noise.erased(t) | ignored if self.hide_noised else ignored

    @abstractmethod
    def description(self) -> dict[str, Any]:
        """Return what :meth:`build` needs, tensors apart, in JSON's types; ``"answers"`` names the file."""

    @classmethod
    @abstractmethod
    def build(cls, description: dict[str, Any], frame: Frame) -> Conditionals:
        """Make the conditionals that were described, with tensors that are still to be loaded."""

    @property
    def device(self) -> torch.device:
        """Where the computation takes place."""
        return self.ignored.device

    @property
    def clean(self) -> Conditionals:
        """Return the conditionals that a corrector asks at time 0; a correction of the chain's own steps is left out."""
        return self

    @property
    def is_autoregressive(self) -> bool:
        """Whether the product of conditionals normalises: hard noise on all sites, and no step looks at an erased one."""
        return self.noise.is_hard and self.hide_noised and self.noise.num_steps >= self.noise.space.sites

    def log_conditionals(self, x: Tensor, y: Tensor | None = None) -> Tensor:
        """Return the conditionals of all sites of rows (n, sites) in the last cycle, t = u, (n, sites, states).

        By default a walk that is told every token: each step looks at what was put before it.
        """
        state = x.T.contiguous()
        walk = self.walk(state, y, torch.zeros(1, dtype=torch.int64, device=x.device))
        answers = []
        for u in reversed(range(len(state))):
            answers.append(log_law(walk.logits(u), self.noise.space.states))
            walk.put(u, state[u])
        return torch.stack(answers[::-1], dim=1)

    def lay_out(self) -> Self:
        """Work out once what every walk needs; the tensors must not change any more."""
        found = {}
        for view in (self.view(sweep=False), self.view(sweep=True)):
            if view is not None:
                found[view.sweep] = (view, self.plan(view))
        self.laid_out = found
        return self

    def blocks(self, n: int, *, cached: bool = False) -> Iterator[slice]:
        """Cut n rows into slices that fit the memory budget.

        If asked to, those on a CPU stay in the cache, where sites are asked one by one. A pass over whole rows reads all weights,
        so that few rows at a time would read them over and over again.
        """
        budget = MEMORY_BUDGET * (ON_GPU if self.device.type == "cuda" else 1)
        if cached and not self.in_one_pass and self.device.type != "cuda":
            budget = CACHE
        size = max(1, budget // self.bytes_per_row)
        for start in range(0, n, size):
            yield slice(start, min(n, start + size))

    def blocks_to_draw(self, n: int) -> Iterator[slice]:
        """Cut n rows into slices that are drawn one after another, each from random numbers of its own.

        Where an evaluation takes all of a row, they hold tokens and random numbers alone, and walks are cut further as
        memory allows: what a seed gives does not depend on how much there is.
        """
        if not self.in_one_pass:
            yield from self.blocks(n)
            return
        yield from batches(n, DRAWN * self.noise.space.sites, budget_on(self.device))

    # --- walks ------------------------------------------------------------------------------------------------------

    def walk(
        self,
        x: Tensor,
        y: Tensor | None,
        cycle: Tensor,
        *,
        top: int | None = None,
        sweep: bool = False,
        precision: str = "float32",
    ) -> Walk:
        """Follow rows (sites, n) through a cycle (1,), from site ``top`` − 1 to 0, or through a sweep at time 0."""
        top = len(x) if top is None else top
        view = self.view(sweep=sweep)
        plan = None if view is None else self.planned(view)
        if view is None or plan is None:
            return self._walk_without_plan(x, y, cycle, top=top, sweep=sweep, precision=precision)
        return Planned(plan, view, cycle, x, y, top=top, precision=precision)

    def _walk_without_plan(
        self, x: Tensor, y: Tensor | None, cycle: Tensor, *, top: int, sweep: bool, precision: str
    ) -> Walk:
        sites = torch.arange(len(x), device=x.device)
        return Recomputed(self, 0 * sites if sweep else cycle * len(x) + sites, x, y)

    def view(self, *, sweep: bool) -> View | None:
        """Return what steps look at, for :meth:`plan`; None where noise has a symbol that plans know nothing of."""
        if sweep in self.laid_out:
            return self.laid_out[sweep][0]
        if self.noise.tokens != self.noise.space.states:
            return None
        return view_of(self.noise, ~self.ignored, hides_erased=self.hide_noised, sweep=sweep)

    def plan(self, view: View) -> Plan | None:
        """Return what a fast walk needs; None where there is no such form."""
        return None

    def looked_at(self) -> Tensor:
        """Return which sites (columns) each site's pairwise terms look at, (sites, sites); none without such terms."""
        sites, view = self.noise.space.sites, self.view(sweep=False)
        plan = None if view is None else self.plan(view)
        if plan is None or plan.pair is None:
            return torch.zeros(sites, sites, dtype=torch.bool, device=self.device)
        return plan.pair.abs().amax((1, 3)) > 0

    def planned(self, view: View) -> Plan | None:
        """Return the plan that was laid out, or make it: :meth:`plan` of the same weights, without doing the work twice."""
        return self.laid_out[view.sweep][1] if view.sweep in self.laid_out else self.plan(view)

    def certain(self, view: View) -> Certain | None:
        """Return the sites whose answer is known beforehand, if there are any."""
        return None


@dataclass(frozen=True)
class Ordered:
    """Conditionals, and the order in which their chain takes the sites of the model."""

    conditionals: Conditionals
    order: tuple[int, ...] | None = None
    """The model's site at each place of the chain's order; None: they are the same."""

    def arranged(self, x: Tensor) -> Tensor:
        """Put the sites of rows (n, sites) in the order of the chain."""
        return x if self.order is None else x[:, list(self.order)]

    def restored(self, x: Tensor) -> Tensor:
        """Undo :meth:`arranged`."""
        return x if self.order is None else x[:, torch.tensor(self.order).argsort()]


def view_of(noise: SiteNoise, looked_at: Tensor, *, hides_erased: bool, sweep: bool) -> View:
    """Find what the steps of a chain, or those of a sweep, look at."""
    sites = torch.arange(noise.space.sites, device=looked_at.device)
    grows = noise.is_hard and hides_erased and not sweep
    cycles = 1 if grows or sweep else noise.cycles
    first = torch.arange(cycles, device=sites.device)[:, None] * len(sites)
    times = first + (torch.zeros_like(sites) if sweep else sites)
    sees = (sites[:, None] < sites if grows else sites[:, None] != sites) & looked_at
    return View(noise, grows, sweep, looked_at, noise.space.states == 2, cycles, times, sees)
