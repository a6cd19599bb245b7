"""D3PM under absorbing noise."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from neurise.models._d3pm.steps import Steps


def linear_keep(timesteps: int, device: torch.device) -> Tensor:
    r"""Steps of :math:`\beta_t = 1/(T - t + 1)`, (T + 1,): :math:`\prod_{s \le t}(1 - \beta_s) = 1 - t/T`."""
    return 1 - torch.arange(timesteps + 1, dtype=torch.float64, device=device) / timesteps


@dataclass(frozen=True)
class AbsorbingSteps(Steps):
    r"""A site becomes the mask, token p, and stays it. A masked site says nothing of what it was, and any other says it all.

    :math:`\bar Q_t[a, p]` is the same for all a, so that the posterior and its published form are one.
    """

    def log_clean(self, logits: Tensor, t: Tensor, x_t: Tensor) -> Tensor:
        """Softmax at masked sites, certainty at the others."""
        certain = self.equal(x_t).to(logits.dtype).log()
        return torch.where(self._masked(x_t)[..., None], torch.log_softmax(logits, dim=-1), certain)

    def log_step(self, log_clean: Tensor, t: Tensor, x_t: Tensor) -> Tensor:
        r"""A masked site is revealed with probability :math:`r_t = (\bar\alpha_{t-1} - \bar\alpha_t)/(1 - \bar\alpha_t)`, here 1/t,

        .. math:: p(x_{t-1} = b \mid x_t = p) = r_t\,\pi_b, \qquad p(x_{t-1} = p \mid x_t = p) = 1 - r_t,

        and any other site stays as it is.
        """
        masked = self._masked(x_t)[..., None]
        reveal = self._reveal(t).to(log_clean.dtype)[:, None, None]
        shown = torch.where(masked, reveal.log() + log_clean, log_clean)
        hidden = torch.where(masked, torch.log1p(-reveal), -torch.inf)
        return torch.cat([shown, hidden], dim=-1)

    def divergence(self, log_clean: Tensor, t: Tensor, x_t: Tensor, x_0: Tensor) -> Tensor:
        r""":math:`r_t (-\log \pi_{x_0})` at masked sites, 0 at the others."""
        return self._reveal(t).to(log_clean.dtype)[:, None] * self.cross_entropy(log_clean, x_0)

    def start_divergence(self) -> Tensor:
        """Nothing: after the last step all is masked."""
        return torch.zeros_like(self.keep[-1])

    def _masked(self, x: Tensor) -> Tensor:
        return x == self.states

    def _reveal(self, t: Tensor) -> Tensor:
        return (self.keep[t - 1] - self.keep[t]) / (1 - self.keep[t])
