"""The exact answer at sites that never vary, around conditionals that were learnt for the others."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any, Self

import torch
from torch import Tensor

from neurise import checks, conditionals
from neurise.conditionals.base import Certain, Conditionals, Frame
from neurise.networks.parts.plan import Plan, View
from neurise.networks.parts.walk import Walk, relative


class KnownSites(Conditionals):
    r"""A site that holds one symbol c in all of the data needs no network: its noised law is given, whatever the others are,

    .. math::
        \mu_t(a) = \varepsilon^{v}\,\beta_a + \frac{1-\varepsilon^{v}}{p}, \qquad
        \beta_a = \begin{cases} 1 - (p-1)\,\omega & a = c \\ \omega & a \ne c, \end{cases}

    where p counts the symbols of the site's own alphabet, and ω = ``unseen`` is the probability of each that it never held.
    At ω = 0 they are impossible, and a row that holds one has the likelihood zero.
    """

    constant: Tensor
    is_certain = True

    def __init__(self, inner: Conditionals, constant: Tensor, *, unseen: float) -> None:
        super().__init__()
        self.inner, self.noise, self.unseen = inner, inner.noise, unseen
        self.hide_noised, self.bytes_per_row = inner.hide_noised, inner.bytes_per_row
        self.bytes_per_walk, self.in_one_pass, self.walks_in = inner.bytes_per_walk, inner.in_one_pass, inner.walks_in
        self.can_sweep, self.has_clean = inner.can_sweep, inner.has_clean
        self.register_buffer("ignored", inner.ignored, persistent=False)
        self.register_buffer("constant", constant, persistent=False)
        self._known: dict[bool, Tensor] = {}

    @property
    def clean(self) -> Conditionals:
        """Keep the known sites around what a corrector asks."""
        inner = self.inner.clean
        return self if inner is self.inner else KnownSites(inner, self.constant, unseen=self.unseen)

    def log_conditional(self, t: Tensor, u: Tensor, x: Tensor, y: Tensor | None = None) -> Tensor:
        """Return the learnt answer, and the known one at constant sites, (..., states)."""
        learnt = self.inner.log_conditional(t, u, x, y)
        known = self.log_known(u, self.noise.visits(t).gather(-1, u[..., None]).squeeze(-1)).to(learnt.dtype)
        return torch.where((self.constant[u] >= 0)[..., None], known, learnt)

    def log_partial(self, u: Tensor, x: Tensor, missing: Tensor, y: Tensor | None = None) -> Tensor | None:
        """Return the learnt answer, and the known one at constant sites, (n, states)."""
        learnt = self.inner.log_partial(u, x, missing, y)
        if learnt is None:
            return None
        known = self.log_known(u, torch.zeros_like(u)).to(learnt.dtype)
        return torch.where((self.constant[u] >= 0)[..., None], known, learnt)

    def log_conditionals(self, x: Tensor, y: Tensor | None = None) -> Tensor:
        """Return the conditionals of all sites, (n, sites, states); by one pass where the learnt ones come so."""
        if not self.inner.in_one_pass:
            return super().log_conditionals(x, y)
        learnt, sites = self.inner.log_conditionals(x, y), torch.arange(x.shape[1], device=x.device)
        known = self.log_known(sites, torch.zeros_like(sites)).to(learnt.dtype)
        return torch.where((self.constant >= 0)[:, None], known, learnt)

    def log_known(self, u: Tensor, visits: Tensor) -> Tensor:
        """Return the log-law of constant sites u after visits, (..., states) float64; of other sites it means nothing."""
        space = self.noise.space
        held = self.constant[u][..., None] == torch.arange(space.states, device=u.device)
        clean = torch.full_like(held, self.unseen, dtype=torch.float64)
        if space.sizes is None:
            clean = clean.masked_fill(held, 1 - (space.states - 1) * self.unseen)
        else:
            own = space.allowed(u.device)[u]
            certain = 1 - (own.sum(-1, keepdim=True, dtype=torch.float64) - 1) * self.unseen
            clean = torch.where(held, certain, clean * own)
        return self.noise.log_noised(clean, visits, u)

    def lay_out(self) -> Self:
        """Lay the learnt part out, which walks by itself."""
        self.inner.lay_out()
        return self

    def plan(self, view: View) -> Plan | None:
        """Plan the learnt part."""
        return self.inner.plan(view)

    def planned(self, view: View) -> Plan | None:
        """Return the plan of the learnt part: one copy of it serves both."""
        return self.inner.planned(view)

    def certain(self, view: View) -> Certain:
        """Return the known answers for every cycle of a view."""
        return Certain(self._is_known, self._answers(view.sweep)[: view.cycles])

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
        """Walk with the learnt conditionals, and answer for constant sites."""
        inner = self.inner.walk(x, y, cycle, top=top, sweep=sweep, precision=precision)
        answers = self._answers(sweep).index_select(0, 0 * cycle if sweep else cycle).squeeze(0)
        return KnownWalk(inner, self._is_known, answers, x.shape[1])

    def _answers(self, sweep: bool) -> Tensor:
        """Return the relative logits of all sites in every cycle, (cycles, sites, outputs) float64, or in a sweep.

        Found once: a recording must not copy numbers to the device.
        """
        if sweep not in self._known:
            sites = torch.arange(self.noise.space.sites, device=self.constant.device)
            cycles = torch.arange(1 if sweep else self.noise.cycles, device=sites.device)[:, None]
            known = self.log_known(sites.expand(len(cycles), -1), cycles.expand(-1, len(sites)))
            self._known[sweep] = relative(known)
        return self._known[sweep]

    @cached_property
    def _is_known(self) -> tuple[bool, ...]:
        """Which sites are known. Found once: to find it is to wait for the device, which a recording must not."""
        return tuple((self.constant >= 0).tolist())

    def description(self) -> dict[str, Any]:
        """Describe the learnt part; the sites are part of the schema."""
        return {"answers": "known_sites", "unseen": self.unseen, "inner": self.inner.description()}

    @classmethod
    def build(cls, description: dict[str, Any], frame: Frame) -> KnownSites:
        """Make the learnt part again."""
        unseen = checks.unseen(description["unseen"], frame.noise.space.states)
        return cls(conditionals.build(description["inner"], frame), frame.constant, unseen=unseen)


class KnownWalk(Walk):
    """A walk that answers for constant sites itself."""

    def __init__(self, inner: Walk, known: Sequence[bool], answers: Tensor, rows: int) -> None:
        self.inner, self.known, self.answers, self.rows = inner, known, answers, rows

    def logits(self, u: int) -> Tensor:
        """Return the known answer where there is one."""
        return self.answers[u].expand(self.rows, -1) if self.known[u] else self.inner.logits(u)

    def put(self, u: int, token: Tensor) -> None:
        """Let the learnt conditionals follow."""
        self.inner.put(u, token)
