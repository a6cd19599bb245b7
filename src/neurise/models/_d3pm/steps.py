"""What D3PM needs to know of a noise: how a prediction of the data becomes a step towards it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class Steps(ABC):
    r"""T steps of a noise, t = 1 … T, and their reversal. After t steps a site is what it was with probability ``keep[t]``.

    A time t is (n,) or (1,), states are (n, sites), and laws are over the tokens of each site, (n, sites, tokens). Laws of
    the data are over p tokens.
    """

    states: int
    keep: Tensor  # (T + 1,) float64; keep[0] = 1

    @property
    def num_steps(self) -> int:
        """T."""
        return len(self.keep) - 1

    @property
    def consistent(self) -> bool:
        """Whether the true law of x_0 given x_t gives the true step."""
        return True

    @abstractmethod
    def log_clean(self, logits: Tensor, t: Tensor, x_t: Tensor) -> Tensor:
        r"""Return :math:`\log \pi`, what the network says of :math:`x_0`, (n, sites, states)."""

    @abstractmethod
    def log_step(self, log_clean: Tensor, t: Tensor, x_t: Tensor) -> Tensor:
        r"""Return :math:`\log p_\theta(x_{t-1} \mid x_t)`, (n, sites, tokens)."""

    @abstractmethod
    def divergence(self, log_clean: Tensor, t: Tensor, x_t: Tensor, x_0: Tensor) -> Tensor:
        r"""Return :math:`\mathrm{KL}(q(x_{t-1} \mid x_t, x_0) \,\|\, p_\theta(x_{t-1} \mid x_t))` of each site, (n, sites).

        At t = 1 it is :math:`-\log p_\theta(x_0 \mid x_1)`.
        """

    @abstractmethod
    def start_divergence(self) -> Tensor:
        r"""Return :math:`\mathrm{KL}(q(x_T \mid x_0) \,\|\, \text{pure noise})` of a site, () or (sites,), for any x_0."""

    def cross_entropy(self, log_clean: Tensor, x_0: Tensor) -> Tensor:
        r"""Return :math:`-\log \pi_{x_0}` of each site, (n, sites)."""
        return -log_clean.gather(-1, x_0.long()[..., None]).squeeze(-1)

    def equal(self, x: Tensor) -> Tensor:
        """Compare each site with every token of the data, (n, sites, states)."""
        return x[..., None] == torch.arange(self.states, device=x.device)
