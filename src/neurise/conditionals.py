"""Single-site conditionals of the noised laws: what drives the reverse chain, the likelihood and the exact law.

Samplers, likelihoods and exact tools know nothing of networks or models; they know :class:`Conditionals`.
"""

from __future__ import annotations

from functools import cached_property
from typing import Protocol

import numpy as np
import torch
from torch import Tensor, nn

from neurise.networks._committee import Committee, agreed
from neurise.noise.round_robin import RoundRobin


class Conditionals(Protocol):
    r"""Something that knows :math:`\mu_t(x_u \mid x_{-u})` along a round-robin chain."""

    @property
    def noise(self) -> RoundRobin:
        """Return the forward process."""

    @property
    def device(self) -> torch.device:
        """Where the computation takes place."""

    @property
    def bytes_per_row(self) -> int:
        """Roughly how much memory one row takes in one evaluation."""

    def hidden(self, t: Tensor) -> Tensor:
        """Which sites, besides u, the conditional of step t does not look at, (..., sites) booleans."""

    def log_conditional(self, t: Tensor, u: Tensor, x: Tensor, y: Tensor | None = None) -> Tensor:
        r"""Logarithm of :math:`\mu_t(x_u = a \mid x_{-u}, y)` for every a, (..., states); t, u, y broadcast against x."""


def is_autoregressive(conditionals: Conditionals) -> bool:
    """Whether the product of conditionals normalises: hard noise, and no conditional looks at an erased site."""
    noise = conditionals.noise
    last_cycle = torch.arange(noise.space.sites, device=conditionals.device)
    return noise.is_hard and bool((conditionals.hidden(last_cycle) == noise.erased(last_cycle)).all())


class NetworkConditionals:
    r"""Conditionals learnt by a network, :math:`\mathrm{softmax}\,f(t, u, x_{-u}, y)`.

    A site that holds one symbol c in all of the data needs no network: its noised law is given, whatever the other sites
    are,

    .. math::
        \mu_t(a) = \varepsilon^{v}\,\beta_a + \frac{1-\varepsilon^{v}}{p}, \qquad
        \beta_a = \begin{cases} 1 - (p-1)\,\omega & a = c \\ \omega & a \ne c, \end{cases}

    where ω = ``unseen`` is the probability of each symbol that the site never held. At ω = 0 they are impossible, and a row
    that holds one has the likelihood zero.
    """

    def __init__(
        self,
        network: nn.Module,
        noise: RoundRobin,
        constant: Tensor,
        *,
        hide_noised: bool,
        width: int,
        unseen: float = 0.0,
    ) -> None:
        states = noise.space.states
        number = isinstance(unseen, int | float | np.floating)
        if not number or not 0 <= unseen < 1 / states:  # a NaN fails this too
            raise ValueError(
                f"unseen must be in [0, 1/{states}), got {unseen!r}: it is the probability of each symbol that a constant "
                f"site never held, and {states} states share what there is; 1e-6 is small, 0 makes them impossible"
            )
        self.network, self._noise, self.hide_noised, self.width = network, noise, hide_noised, width
        self.unseen = float(unseen)
        self.constant = constant  # (sites,): the only token of a site, or −1
        self.any_constant = bool((constant >= 0).any())

    @property
    def noise(self) -> RoundRobin:
        """Return the forward process."""
        return self._noise

    @property
    def device(self) -> torch.device:
        """Where the network is."""
        return self.constant.device

    @property
    def bytes_per_row(self) -> int:
        """Memory of a one-hot, as booleans and as floats, and of a few hidden layers of every network."""
        networks = self.network.size if isinstance(self.network, Committee) else 1
        return 6 * self.noise.space.sites * self.noise.space.states + 16 * self.width * networks

    @cached_property
    def steps_to_learn(self) -> Tensor:
        """Steps at sites that vary. Found once: to count them is to wait for the device."""
        steps = torch.arange(self.noise.num_steps, device=self.device)
        return steps[self.constant[self.noise.site(steps)] < 0]

    @cached_property
    def sites_to_learn(self) -> Tensor:
        """Sites that vary."""
        return torch.nonzero(self.constant < 0).flatten()

    def hidden(self, t: Tensor) -> Tensor:
        """Hide the sites that hold pure noise at time t (equal in law), unless the paper's unmasked form is asked for."""
        erased = self._noise.erased(t)
        return erased if self.hide_noised else torch.zeros_like(erased)

    def opinion(self, logits: Tensor) -> Tensor:
        """Turn what the network says into the logarithm of a conditional, (..., states); a committee is made to agree."""
        log_conditional = torch.log_softmax(logits, dim=-1)
        return agreed(log_conditional) if isinstance(self.network, Committee) else log_conditional

    def log_conditional(self, t: Tensor, u: Tensor, x: Tensor, y: Tensor | None = None) -> Tensor:
        """Log-softmax of the network, and the exact answer at constant sites, (..., states)."""
        log_conditional = self.opinion(self.network(t, u, x, self.hidden(t), y))
        if not self.any_constant:
            return log_conditional
        visits = self._noise.visits(t).gather(-1, u[..., None]).squeeze(-1)
        known = self.log_known(u, visits).to(log_conditional.dtype)
        return torch.where((self.constant[u] >= 0)[..., None], known, log_conditional)

    def log_known(self, u: Tensor, visits: Tensor) -> Tensor:
        """Logarithm of the noised law of constant sites u, (..., states) float64; what it says of other sites means nothing."""
        states = self._noise.space.states
        held = self.constant[u][..., None] == torch.arange(states, device=u.device)
        clean = torch.full_like(held, self.unseen, dtype=torch.float64)
        return self._noise.log_noised(clean.masked_fill(held, 1 - (states - 1) * self.unseen), visits)
