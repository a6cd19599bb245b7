"""The true conditionals of a law that is written out, along any chain of single-site noise."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from neurise.chain_law import chain_law, on_the_way, padded
from neurise.conditionals.base import Conditionals, Frame
from neurise.laws import as_law
from neurise.noise.base import SiteNoise
from neurise.space import Space


class ExactConditionals(Conditionals):
    r"""The true conditionals of a pmf along a chain, in the place of learnt ones: an oracle, for small spaces.

    With ``hide_noised`` the sites that hard noise has erased are summed over instead of looked at. Under noise with a mask
    they are :math:`P(x_{0,u} = a \mid \text{unmasked sites})`.

    >>> import neurise
    >>> from neurise.noise.round_robin import RoundRobin
    >>> data = neurise.datasets.edwards_anderson(side=2, seed=0)
    >>> noise = RoundRobin(data.space, keep_prob=0.5, cycles=2)
    >>> oracle = neurise.exact.ExactConditionals(data.pmf, noise)
    >>> neurise.exact.bound(oracle, data.pmf).eta < 1e-12        # the true kernels have no error
    True
    """

    pmf: Tensor

    def __init__(self, pmf: Any, noise: SiteNoise, *, hide_noised: bool = False) -> None:
        super().__init__()
        self.noise, self.hide_noised, self.bytes_per_row = noise, hide_noised, 1024
        self.register_buffer("ignored", torch.zeros(noise.space.sites, dtype=torch.bool))
        self.register_buffer("pmf", as_law(pmf, noise.space.size, "pmf"))
        self._tables: dict[tuple[int, int], Tensor] = {}

    def description(self) -> dict[str, Any]:
        """It is an oracle, and not saved."""
        raise NotImplementedError("exact conditionals are not saved; save the pmf")

    @classmethod
    def build(cls, description: dict[str, Any], frame: Frame) -> Conditionals:
        """It is an oracle, and not saved."""
        raise NotImplementedError("exact conditionals are not saved; save the pmf")

    @property
    def conditionals(self) -> Conditionals:
        """Return itself, so that it can stand for a fitted model."""
        return self

    @property
    def space_(self) -> Space:
        """Return the space of the chain."""
        return self.noise.space

    def chain_law(self, label: Tensor | None, start: Tensor | None = None, sweeps: Any = None) -> Tensor:
        """Return the law of the chain that the true conditionals reverse."""
        return chain_law(self, label, start, sweeps={0: sweeps} if isinstance(sweeps, int) else sweeps)

    @property
    def order_(self) -> Sequence[int]:
        """Return the sites in their own order."""
        return range(self.noise.space.sites)

    def label_terms(self, y: Any) -> list[tuple[Tensor | None, float]]:
        """Return the one term of a model without labels."""
        return [(None, 1.0)]

    def log_conditional(self, t: Tensor, u: Tensor, x: Tensor, y: Tensor | None = None) -> Tensor:
        """Look the true conditional up, (..., states)."""
        space, whole = self.noise.space, on_the_way(self.noise)
        place = whole.index(x)
        leading = (t + u + place).shape
        index = place.expand(leading)
        result = torch.zeros((*leading, space.states), dtype=torch.float64)
        steps, places = t.expand(leading), u.expand(leading)
        for step, site in {*zip(steps.flatten().tolist(), places.flatten().tolist(), strict=True)}:
            here = (steps == step) & (places == site)
            after, context, table = math.prod(whole.digits[site + 1 :]), index[here], self.table(step, site)
            found = table[context // (after * whole.digits[site]), :, context % after]
            result[here] = padded(found, space.states)
        return result.log()

    def table(self, t: int, site: int) -> Tensor:
        r"""Return the conditional of a site at time t in every context, (m^u, p, m^{q−1−u}) for m tokens on the way.

        Where sites have alphabets of their own, p is the size of the site's.

        Sites are noised independently of each other. So the other sites are noised first, which gives the law λ of
        :math:`x_{0,u}` given what they are by time t, and then λ is noised by the visits to u itself. A context of
        probability zero has no conditional; its λ is uniform.
        """
        if (t, site) not in self._tables:
            noise, axes = self.noise, range(self.noise.space.sites)
            visits = noise.visits(torch.tensor(t)).tolist()
            hidden = self.hidden(torch.tensor(t)).tolist()
            joint, whole = self.pmf.view(noise.space.digits), on_the_way(noise)
            for other in axes:
                if other != site:
                    moved = joint.movedim(other, -1)
                    spread = moved.sum(-1, keepdim=True) if hidden[other] else noise.spread(moved, visits[other])
                    joint = spread.expand(*spread.shape[:-1], whole.digits[other]).movedim(-1, other)
            mass = joint.sum(dim=site, keepdim=True)
            clean = torch.where(mass > 0, joint / mass, 1 / noise.space.digits[site]).movedim(site, -1)
            law = noise.log_noised(clean, torch.tensor(visits[site], device=clean.device)).exp().movedim(-1, site)
            self._tables[t, site] = law.reshape(math.prod(whole.digits[:site]), noise.space.digits[site], -1)
        return self._tables[t, site]
