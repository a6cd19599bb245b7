"""Conditionals of all sites of a row, which one network gives in one pass."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from neurise import networks
from neurise.conditionals.base import Conditionals, Frame
from neurise.networks.base import RowNetwork
from neurise.networks.parts.plan import View
from neurise.networks.parts.walk import Walk
from neurise.space import Space, possible
from neurise.walks import Recomputed


class RowConditionals(Conditionals):
    r"""Conditionals of an autoregressive law, :math:`\mathrm{softmax}\,f_u(x_{>u}, y)` for all sites u in one pass.

    For hard noise of one cycle, where the sites up to u hold nothing but noise at step u. A network that looks at both sides of
    a site answers :math:`\mu_0(x_u \mid x_{-u}, y)` instead, whatever the step: for sweeps, and not for a chain. Sites that never
    vary tell nothing of the others: the network is shown token 0 there, so that a token they never held cannot disturb the
    answers.
    """

    in_one_pass = True

    def __init__(self, network: RowNetwork, frame: Frame) -> None:
        super().__init__()
        self.network, self.noise = network, frame.noise
        self.can_sweep, self.hide_noised = network.looks_both_ways, not network.looks_both_ways
        self.register_buffer("ignored", frame.constant >= 0, persistent=False)
        self.bytes_per_row, self.bytes_per_walk = network.bytes_per_row(training=False), network.bytes_per_walk
        self.walks_in = network.walks_in

    def log_conditional(self, t: Tensor, u: Tensor, x: Tensor, y: Tensor | None = None) -> Tensor:
        """Return the answer at site u, (..., states), out of all that one pass gives."""
        leading = torch.broadcast_shapes(t.shape, u.shape, x.shape[:-1])  # type: ignore[no-untyped-call]
        rows = self._shown(x).expand(*leading, -1).reshape(-1, x.shape[-1])
        labels = None if y is None else y.expand(leading).reshape(-1)
        sites, states = u.expand(leading).reshape(-1), self.noise.space.states
        answers = list[Tensor]()
        for part in self.blocks(len(rows)):
            logits = self.network(rows[part], None if labels is None else labels[part])
            answers.append(logits.gather(1, sites[part, None, None].expand(-1, 1, states)))
        found = torch.cat(answers)
        if self.noise.space.sizes is not None:
            found = possible(found, self.noise.space, sites[:, None])
        return torch.log_softmax(found, dim=-1).reshape(*leading, -1)

    def log_conditionals(self, x: Tensor, y: Tensor | None = None) -> Tensor:
        """Return the conditionals of all sites, (n, sites, states), by one pass."""
        logits = self.network(self._shown(x), y)
        if self.noise.space.sizes is not None:
            logits = possible(logits, self.noise.space)
        return torch.log_softmax(logits, dim=-1)

    def _shown(self, x: Tensor) -> Tensor:
        """Return the tokens that the network is shown. Noise may have written a symbol of its own, which nobody looks at."""
        return x.masked_fill(self.ignored | (x >= self.noise.space.states), 0)

    def view(self, *, sweep: bool) -> View | None:
        """Return None: a pass over the row has no first layer that follows one token."""
        return None

    def looked_at(self) -> Tensor:
        """Return the sites that the network says it looks at."""
        found = self.network.looked_at()
        return super().looked_at() if found is None else found

    def _walk_without_plan(
        self, x: Tensor, y: Tensor | None, cycle: Tensor, *, top: int, sweep: bool, precision: str
    ) -> Walk:
        if sweep and not self.can_sweep:
            raise NotImplementedError("a network that answers from the sites after a site cannot sweep")
        sites = torch.arange(len(x), device=x.device)
        walk = self.network.walk(x, y, precision=precision) if top == len(x) else None
        if walk is None:
            return Recomputed(self, sites, x, y)
        walk = Blind(walk, self._is_ignored) if any(self._is_ignored) else walk
        return walk if self.noise.space.sizes is None else Within(walk, self.noise.space)

    @cached_property
    def _is_ignored(self) -> tuple[bool, ...]:
        """Which sites are not looked at. Found once: to find it is to wait for the device, which a recording must not."""
        return tuple(self.ignored.tolist())

    def description(self) -> dict[str, Any]:
        """Describe the network."""
        return {"answers": "row_conditionals", "network": self.network.description()}

    @classmethod
    def build(cls, description: dict[str, Any], frame: Frame) -> RowConditionals:
        """Make the network again."""
        noise = frame.noise
        return cls(networks.build(description["network"], noise.space, noise.num_steps, frame.classes), frame)


class Within(Walk):
    """A walk on which the states that a site does not have are impossible."""

    def __init__(self, inner: Walk, space: Space) -> None:
        self.inner, self.space = inner, space

    def logits(self, u: int) -> Tensor:
        """Give what is impossible −∞."""
        logits = self.inner.logits(u)
        own = self.space.allowed(logits.device)[u, -logits.shape[-1] :]
        return logits.masked_fill(~own, -torch.inf)

    def put(self, u: int, token: Tensor) -> None:
        """Tell the token."""
        self.inner.put(u, token)


class Blind(Walk):
    """A walk that is told token 0 wherever nobody looks."""

    def __init__(self, inner: Walk, ignored: Sequence[bool]) -> None:
        self.inner, self.ignored = inner, ignored

    def logits(self, u: int) -> Tensor:
        """Ask on."""
        return self.inner.logits(u)

    def put(self, u: int, token: Tensor) -> None:
        """Tell the token, or 0."""
        self.inner.put(u, torch.zeros_like(token) if self.ignored[u] else token)
