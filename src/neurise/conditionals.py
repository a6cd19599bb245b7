"""Single-site conditionals of the noised laws: what drives the reverse chain, the likelihood and the exact law.

Samplers, likelihoods and exact tools know nothing of networks or models; they know :class:`Conditionals`.
"""

from __future__ import annotations

from functools import cached_property
from typing import Protocol

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

    A site that holds one symbol c in all of the data needs no network: its noised law is known,
    :math:`\varepsilon^{v}\delta_{ac} + (1-\varepsilon^{v})/p` whatever the other sites are, and is given exactly.
    """

    def __init__(
        self, network: nn.Module, noise: RoundRobin, constant: Tensor, *, hide_noised: bool, width: int
    ) -> None:
        self.network, self._noise, self.hide_noised, self.width = network, noise, hide_noised, width
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
        only = self.constant[u]
        visits = self._noise.visits(t).gather(-1, u[..., None]).squeeze(-1)
        exact = self._noise.log_kernel(only, visits).to(log_conditional.dtype)
        return torch.where((only >= 0)[..., None], exact, log_conditional)
