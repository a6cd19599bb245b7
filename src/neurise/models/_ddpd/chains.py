"""How planned denoising samples: one site per step, chosen by the planner, or all sites at once."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Generator, Tensor

from neurise.modeling.joint import Denoiser, JointChain
from neurise.models._ddpd.objective import PlannedObjective
from neurise.sampling.one_site import Plan
from neurise.space import Space

POWER = 1.5
"""How the share of noise falls over the steps, (steps left / steps)^POWER: as for the uniform source of DFM. With POWER steps
per site the first step lets it fall by one site; with fewer, steps that move one site cannot follow."""


@dataclass(frozen=True)
class TogetherChain(JointChain):
    r"""All sites move at once: in a step from the noised share m to m', each becomes a draw from :math:`\mu_i` with probability

    .. math:: g_i = \zeta_i\,\frac{m - m'}{m}.

    This is tau-leaping with the integrated rate: exact if there were one site alone.
    """

    objective: PlannedObjective

    def log_step(self, step: int, x: Tensor, y: Tensor | None) -> Tensor:
        """Return the logarithm of the law of each site after a step, (n, sites, tokens) float64."""
        before, after = (((step + more) / self.num_steps) ** POWER for more in (1, 0))
        noised = torch.full((1,), before, dtype=torch.float64, device=self.device)
        answers = self.objective.accurate(noised, x, y)
        log_go = answers.log_noise + torch.log1p(-after / noised)
        return self.denoiser.settled(answers.log_moved(x, log_go))


@dataclass(frozen=True)
class PlannedChain:
    r"""In a step from the noised share m to m' one site may move. Site i is chosen with probability

    .. math:: c_i = \frac{\zeta_i}{\sum_j \zeta_j},

    and becomes a draw from :math:`\mu_i` with probability :math:`\min\big(1,\ \sum_j \zeta_j\,(m - m')/m\big)`; else it stays.
    These are the rates of :class:`TogetherChain`, but no two sites move in one step. Of n sites one is expected to move while
    m falls by 1/n, so m falls no faster than that. In the last step each site becomes a draw from :math:`\mu_i` with
    probability :math:`\zeta_i`: where there are fewer steps than sites, this is most of the way.
    """

    objective: PlannedObjective
    num_steps: int
    varying: int  # how many sites are ever noise

    @property
    def denoiser(self) -> Denoiser:
        """Return both networks and the noise."""
        return self.objective.denoiser

    @property
    def space(self) -> Space:
        """Return the space of the data."""
        return self.denoiser.space

    @property
    def device(self) -> torch.device:
        """Where the networks are."""
        return self.denoiser.device

    @property
    def bytes_per_row(self) -> int:
        """Roughly how much memory one row takes in one step."""
        return self.denoiser.bytes_per_row

    def start(self, n: int, *, generator: Generator) -> Tensor:
        """Draw n states of pure noise."""
        return self.denoiser.start(n, generator=generator)

    def start_law(self) -> Tensor:
        """Law of each site at the start."""
        return self.denoiser.start_law()

    def noised(self, step: int) -> float:
        """Return the share of noise before a step."""
        made = self.num_steps - 1 - step
        return float(max(((step + 1) / self.num_steps) ** POWER, 1 - made / max(self.varying, 1)))

    def shown(self, step: int, left: Tensor) -> Tensor:
        """Return the share of noise that the networks are shown before a step, (n,) or (1,)."""
        return torch.full_like(left[:1], self.noised(step))

    def log_go(self, step: int, expected: Tensor) -> Tensor:
        """Return the log-probability that the chosen site moves, where so many sites are ``expected`` to be noise, (n, 1)."""
        before, after = self.noised(step), self.noised(step - 1)
        return torch.log((expected * (1 - after / before)).clamp(max=1))

    def plan(self, step: int, x: Tensor, y: Tensor | None, left: Tensor) -> Plan:
        """Return what a step may do, float64."""
        answers = self.objective.accurate(self.shown(step, left), x, y)
        noise = torch.where(self.denoiser.varies, answers.log_noise.exp(), 0.0)  # (n, sites)
        expected = noise.sum(-1, keepdim=True)
        # Where nothing is noise the choice does not matter, for nothing moves.
        choice = torch.where(expected > 0, noise / expected, 1 / self.space.sites)
        law = self.denoiser.settled(answers.log_moved(x, self.log_go(step, expected)))
        return Plan(choice.log(), law, (expected - noise) / max(self.varying, 1))

    def finish(self, x: Tensor, y: Tensor | None, left: Tensor) -> Tensor:
        """Denoise each site that is noise, float64."""
        answers = self.objective.accurate(self.shown(0, left), x, y)
        return self.denoiser.settled(answers.log_moved(x, answers.log_noise))


@dataclass(frozen=True)
class AdaptiveChain(PlannedChain):
    r"""The published sampler: in every step one site moves for certain, chosen with probability :math:`\zeta_i / \sum_j \zeta_j`.

    The share of noise that the networks are shown next is what the planner has seen, less the site that it chose:
    :math:`\sum_{j \ne i} \zeta_j / n` with n sites. (The published planner is not shown any.) With the true ζ the share comes to
    be that of maximum likelihood, for

    .. math:: \frac{\partial}{\partial m} \log P(x \mid m) = \frac{\sum_j \zeta_j - n\,m}{m\,(1 - m)}.
    """

    def shown(self, step: int, left: Tensor) -> Tensor:
        """Return what the planner saw to be left."""
        return left

    def log_go(self, step: int, expected: Tensor) -> Tensor:
        """Return log 1; but log 0 where no site can be noise."""
        return torch.where(expected > 0, 0.0, -torch.inf).to(expected.dtype)
