r"""The joint of the house: whoever knows :math:`\mu_t(x_u \mid x_{-u})` drives samplers, likelihoods and exact laws.

Everything above asks this question and knows nothing of networks; everything below is one way to answer it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, Self

import torch
from torch import Tensor, nn

from neurise.networks.parts.plan import Plan, View
from neurise.noise.base import SiteNoise
from neurise.walks import Planned, Recomputed, Walk, log_law


@dataclass(frozen=True)
class Frame:
    """What the parts of one model share: the chain, the number of classes, and the sites that never vary."""

    noise: SiteNoise
    classes: int
    constant: Tensor  # (sites,): the only token of a site, or −1; on the device of the model

    def hidden(self, t: Tensor, *, hide_noised: bool) -> Tensor:
        """Return the sites that networks must not look at: constant ones, and those that hold pure noise if asked to."""
        constant = (self.constant >= 0).expand(*t.shape, -1)
        return constant | self.noise.erased(t) if hide_noised else constant


class Certain(NamedTuple):
    """Answers that need no network: which sites are certain, and their relative logits in every cycle."""

    sites: tuple[bool, ...]
    logits: Tensor  # (cycles, sites, outputs) float64


class Conditionals(nn.Module, ABC):
    r"""Something that knows :math:`\mu_t(x_u \mid x_{-u})` along a chain that noises one site per step.

    **Writing one.** A way to answer is one file in ``conditionals/`` whose class bears the file's name. It writes
    ``log_conditional``, the reference form, ``hidden`` and ``description``/``build``, and keeps what it has learnt as
    parameters and buffers. It can then be sampled from, scored, clamped, written out exactly, corrected by sweeps, put into a
    :class:`~neurise.conditionals.committee.Committee`, saved and loaded. A faster form of ``log_conditionals`` or ``walk`` has
    the same signature, and a test ties it to the default here.
    """

    noise: SiteNoise

    def __init__(self) -> None:
        super().__init__()
        self._plans: dict[bool, Plan | None] = {}  # of the chain and of sweeps, once they are laid out

    @abstractmethod
    def log_conditional(self, t: Tensor, u: Tensor, x: Tensor, y: Tensor | None = None) -> Tensor:
        r"""Return :math:`\log \mu_t(x_u = a \mid x_{-u}, y)` for every a, (..., states); t, u, y broadcast against x."""

    @abstractmethod
    def hidden(self, t: Tensor) -> Tensor:
        """Return which sites, besides u, the conditional of step t does not look at, (..., sites) booleans."""

    @property
    @abstractmethod
    def bytes_per_row(self) -> int:
        """Estimate the memory of one row in one evaluation."""

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
        return next(iter([*self.parameters(), *self.buffers()])).device

    @property
    def clean(self) -> Conditionals:
        """Return the conditionals that a corrector asks at time 0; a correction of the chain's own steps is left out."""
        return self

    @cached_property
    def is_autoregressive(self) -> bool:
        """Whether the product of conditionals normalises: hard noise on all sites, and no step looks at an erased one."""
        noise = self.noise
        if not noise.is_hard or noise.num_steps < noise.space.sites:
            return False
        last_cycle = torch.arange(noise.space.sites, device=self.device)
        return bool((self.hidden(last_cycle) | ~noise.erased(last_cycle)).all())

    def log_conditionals(self, x: Tensor, y: Tensor | None = None) -> Tensor:
        """Return the conditionals of all sites of rows (n, sites) in the last cycle, t = u, (n, sites, states).

        By default a walk that is told every token: each step looks at what was put before it.
        """
        state = x.T.contiguous()
        walk = self.walk(state, y, torch.zeros(1, dtype=torch.int64, device=x.device))
        answers = []
        for u in reversed(range(len(state))):
            answers.append(log_law(walk.logits(u)))
            walk.put(u, state[u])
        return torch.stack(answers[::-1], dim=1)

    def lay_out(self) -> Self:
        """Work out once what every walk needs; the tensors must not change any more."""
        for view in (self.view(sweep=False), self.view(sweep=True)):
            if view is not None:
                self._plans[view.sweep] = self.plan(view)
        return self

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
        noise = self.noise
        if noise.tokens != noise.space.states:
            return None
        return self._sweep_view if sweep else self._chain_view

    @cached_property
    def _chain_view(self) -> View:
        """What steps of the chain look at. Found once: to find it is to wait for the device, which a recording must not."""
        last = torch.full((1,), self.noise.space.sites - 1, dtype=torch.int64, device=self.device)
        hides = bool((self.hidden(last) | ~self.noise.erased(last)).all())
        return View(self.noise, self.noise.is_hard and hides, False, self._looked_at())

    @cached_property
    def _sweep_view(self) -> View:
        return View(self.noise, False, True, self._looked_at())

    def _looked_at(self) -> Tensor:
        return ~self.hidden(torch.zeros(1, dtype=torch.int64, device=self.device))[0]

    def plan(self, view: View) -> Plan | None:
        """Return what a fast walk needs; None where there is no such form."""
        return None

    def planned(self, view: View) -> Plan | None:
        """Return the plan that was laid out, or make it: :meth:`plan` of the same weights, without doing the work twice."""
        return self._plans[view.sweep] if view.sweep in self._plans else self.plan(view)

    def certain(self, view: View) -> Certain | None:
        """Return the sites whose answer is known beforehand, if there are any."""
        return None
