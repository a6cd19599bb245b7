"""D3PM under uniform noise."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from neurise.models._d3pm.steps import Steps
from neurise.space import Space, possible

OFFSET = 0.008
"""Of the cosine schedule: keeps the first steps from being vanishingly small."""
MAX_BETA = 0.999
"""No single step erases more than this."""


def cosine_keep(timesteps: int, device: torch.device) -> Tensor:
    r"""Cosine schedule, (T + 1,): :math:`\prod_{s \le t} (1 - \beta_s)` for

    .. math:: \beta_t = \min\big(1 - \bar\alpha(t)/\bar\alpha(t-1),\ 0.999\big), \qquad
        \bar\alpha(t) = \cos\Big(\frac{t/T + 0.008}{1.008} \cdot \frac{\pi}{2}\Big).
    """
    t = torch.arange(timesteps + 1, dtype=torch.float64, device=device)
    level = torch.cos((t / timesteps + OFFSET) / (1 + OFFSET) * math.pi / 2)
    kept = (level[1:] / level[:-1]).clamp(min=1 - MAX_BETA)
    return torch.cat([torch.ones_like(t[:1]), kept.cumprod(0)])


@dataclass(frozen=True)
class UniformSteps(Steps):
    r"""Steps :math:`Q_t[a, b] = \alpha_t \delta_{ab} + (1 - \alpha_t)/p`, with :math:`\bar Q_t = Q_1 \cdots Q_t` of the same form.

    The true posterior of a site is its likelihood times what the other sites say,
    :math:`P(x_{0,i} = a \mid x_t) \propto \bar Q_t[a, x_{t,i}]\, P(x_{0,i} = a \mid x_{t,-i})`. With ``offset`` the known first
    factor is added to the logits, and the network has the second one to learn.
    """

    offset: bool
    published: bool
    space: Space | None = None  # where sites have alphabets of their own: p is the size of the site's

    @property
    def consistent(self) -> bool:
        """The published form is not."""
        return not self.published

    def log_clean(self, logits: Tensor, t: Tensor, x_t: Tensor) -> Tensor:
        r""":math:`\mathrm{softmax}(f)`, or :math:`\mathrm{softmax}_a(f_a + \log \bar Q_t[a, x_t])` with ``offset``."""
        known = self._log_kernel(self.keep[t], x_t, logits.dtype) if self.offset else 0.0
        return torch.log_softmax(logits + known, dim=-1)

    def log_step(self, log_clean: Tensor, t: Tensor, x_t: Tensor) -> Tensor:
        r"""Posterior of one step,

        .. math:: p(x_{t-1} = b \mid x_t) = Q_t[b, x_t] \sum_a w_a \bar Q_{t-1}[a, b]
            = Q_t[b, x_t] \Big(\bar\alpha_{t-1} w_b + \frac{1 - \bar\alpha_{t-1}}{p} \sum_a w_a\Big),
            \qquad w_a = \frac{\pi_a}{\bar Q_t[a, x_t]}.

        It sums to one by itself and is π at t = 1. The published form has :math:`w_a = \pi_a`, is normalised afterwards, and
        takes π at t = 1. It would be right for a π that leaves the site's own value out, since
        :math:`\pi_a / \bar Q_t[a, x_{t,i}] \propto P(x_{0,i} = a \mid x_{t,-i})`; cross-entropy finds the π that does not.
        """
        before, now = self.keep[t - 1], self.keep[t]
        weight = log_clean if self.published else log_clean - self._log_kernel(now, x_t, log_clean.dtype)
        levels = (before[:, None, None], (1 - before)[:, None, None] / self._sizes)
        log_keep, log_spread = (level.log().to(log_clean.dtype) for level in levels)
        # Of what is impossible both terms are −∞ at t = 1, and have no gradient: it is left out until the end.
        own = weight if self.space is None else weight.masked_fill(~self.space.allowed(weight.device), 0.0)
        mixed = torch.logaddexp(log_keep + own, log_spread + weight.logsumexp(-1, keepdim=True))
        step = self._only(self._log_kernel(now / before, x_t, log_clean.dtype) + mixed)
        return torch.where(t[:, None, None] == 1, log_clean, step.log_softmax(-1)) if self.published else step

    def divergence(self, log_clean: Tensor, t: Tensor, x_t: Tensor, x_0: Tensor) -> Tensor:
        r"""Sum over the p tokens, with :math:`q(b \mid x_t, x_0) = Q_t[b, x_t]\, \bar Q_{t-1}[x_0, b] / \bar Q_t[x_0, x_t]`."""
        before, now, dtype = self.keep[t - 1], self.keep[t], log_clean.dtype
        seen = self._log_kernel(now, x_t, dtype).gather(-1, x_0.long()[..., None])
        bridge = self._only(self._log_kernel(now / before, x_t, dtype) + self._log_kernel(before, x_0, dtype) - seen)
        excess = bridge - self.log_step(log_clean, t, x_t)
        return torch.where(bridge > -torch.inf, bridge.exp() * excess, 0.0).sum(-1)

    def start_divergence(self) -> Tensor:
        """Little is left of the data after the last step, but not nothing: no step erases everything."""
        states = self._sizes if self.space is None else self._sizes.squeeze(-1)
        other = (1 - self.keep[-1]) / states
        same = self.keep[-1] + other
        divergence: Tensor = same * (states * same).log() + (states - 1) * other * (states * other).log()
        return divergence

    @property
    def _sizes(self) -> Any:
        """p: a number, or one per site, (sites, 1)."""
        return self.states if self.space is None else self.space.allowed(self.keep.device).sum(1, keepdim=True).double()

    def _only(self, log_law: Tensor) -> Tensor:
        """Give tokens that a site does not have −∞."""
        return log_law if self.space is None else possible(log_law, self.space)

    def _log_kernel(self, keep: Tensor, x: Tensor, dtype: torch.dtype) -> Tensor:
        """Log Q[a, x] = log Q[x, a] at the levels ``keep`` (n,) for every token a, (n, sites, states)."""
        other = (1 - keep)[:, None, None] / self._sizes
        same, different = (level.log().to(dtype) for level in (keep[:, None, None] + other, other))
        return torch.where(self.equal(x), same, different)
