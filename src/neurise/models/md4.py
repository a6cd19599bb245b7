"""MD4: masked diffusion with learnt schedules (Shi et al. 2024)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

import torch
from torch import Generator, Tensor

from neurise import checks
from neurise.checks import is_number
from neurise.modeling.joint import JointModel
from neurise.modeling.renoising import RenoisingChain
from neurise.models._md4.network import ScheduledMLP
from neurise.models._md4.objective import MaskingObjective
from neurise.networks.parts.layers import one_hot
from neurise.noise.absorbing import Absorbing
from neurise.training.objective import Objective

MOST_SPREAD = 8.0
"""With greater exponents hardly any of the training times has a masked site."""


@dataclass(frozen=True)
class MaskingChain(RenoisingChain):
    r"""From time t to s < t, equal steps apart, a masked site is shown by the posterior of its schedule:

    .. math:: P(x_s = a \mid x_t) = \mu_a \big(1 - (s/t)^{w_a}\big), \qquad P(x_s = \text{mask}) = \sum_a \mu_a\,(s/t)^{w_a}.

    With one site this is exact, whatever the number of steps. To be masked again, sites go to s' < s first, and from there by
    their schedules to s: the token a is masked with probability :math:`(s^{w_a} - s'^{w_a})/(1 - s'^{w_a})`.
    """

    power: float

    def log_step(self, step: int, x: Tensor, y: Tensor | None) -> Tensor:
        """Return the logarithm of the law of each site after a step, (n, sites, tokens) float64."""
        network = self.denoiser.network
        t, s = (step + 1) / self.num_steps, step / self.num_steps
        v = torch.full((1,), t ** (1 / self.power), dtype=torch.float64, device=x.device)
        log_mu, w = network(v, x, y).double().log_softmax(-1), network().double().exp()
        least = self.too_far(s)
        log_stay = w * (math.log(least / t) if least else -math.inf)  # of (s'/t)^w
        shown = log_mu + torch.log(-torch.expm1(log_stay))
        hidden = (log_mu + log_stay).logsumexp(-1, keepdim=True)
        held = one_hot(x, self.tokens, log_mu.dtype).log()
        masked = (x == self.space.states)[..., None]
        law = torch.where(masked, torch.cat([shown, hidden], -1), held)
        if least < s:
            again = (s**w - least**w) / (1 - least**w)  # (sites, states)
            gone = (law[..., :-1] + again.log()).logsumexp(-1, keepdim=True)
            law = torch.cat([law[..., :-1] + torch.log1p(-again), law[..., -1:].logaddexp(gone)], -1)
        return self.denoiser.settled(law)


@dataclass(kw_only=True, eq=False, repr=False)
class MD4(JointModel):
    r"""Masked diffusion that learns when each token of each site is masked.

    A site with the token a is masked by time t with probability :math:`t^{w_a}`, and the exponents are learnt together with the
    network that predicts what masks hide: tokens with small exponents are masked early and shown late. All exponents together
    may be multiplied by a number without any effect, so that only their ratios matter. With ``spread=1`` all of them are 1
    and the loss is that of :class:`DFM` with a mask. The method that learns them is published as GenMD4.

    ``elbo`` bounds the likelihood of the sampler with infinitely many steps, and is tight where the network is, whatever the
    schedules. Sites that are shown in the same step do not see each other, so the law of the samples comes near the learnt
    one like 1 / ``sampling_steps``.

    Args:
        spread: exponents lie between 1/spread and spread; 1 keeps one schedule for all. Where they are learnt, each row is masked
            twice per step, which takes twice the time.
        sampling_steps: how many steps a sample takes, each with one evaluation of the network.
        renoise: how much is masked again on the way, so that what was drawn early may still change: per step, a share of the
            sites that is renoise / sampling_steps times the present share of masks.
        width, depth: size of the network.
        order: the sites in the order in which the model takes them.
        alphabet: all symbols, where the sample may lack some.
        steps: how long to train where ``fit`` is given neither ``max_steps`` nor ``max_seconds``.
        training: the training loop, a group (:class:`neurise.Training`).

    >>> import neurise
    >>> X = [[0, 0, 1], [1, 1, 0], [0, 0, 0], [1, 1, 1]] * 25
    >>> model = neurise.MD4(width=8, steps=5).fit(X, verbose=False)
    >>> model.sample(4, seed=0).shape
    (4, 3)
    """

    changeable: ClassVar[tuple[str, ...]] = ("sampling_steps", "renoise")

    spread: float = 2.0
    sampling_steps: int = 256
    renoise: float = 0.0

    def _build(self) -> Objective:
        if not is_number(self.spread) or not 1 <= self.spread <= MOST_SPREAD:
            raise ValueError(f"spread must be a number from 1 to {MOST_SPREAD:g}, got {self.spread!r}")
        self._num_steps()
        spread = float(self.spread)
        return MaskingObjective(
            self._denoiser(Absorbing(self.schema_.space), partial(ScheduledMLP, spread=spread)), spread
        )

    def _num_steps(self) -> int:
        """Check how to sample, and return the number of steps."""
        checks.not_negative("renoise", self.renoise)
        return checks.count("sampling_steps", self.sampling_steps, checks.MOST_STEPS)

    def _chain(self) -> MaskingChain:
        return MaskingChain(self._learnt.denoiser, self._num_steps(), self._learnt.power, renoise=self.renoise)

    def _elbo(self, x: Tensor, y: Tensor | None, generator: Generator) -> Tensor:
        return self._learnt.bound(x, y, generator=generator)

    @property
    def _learnt(self) -> MaskingObjective:
        objective: MaskingObjective = self.objective_  # type: ignore[assignment]
        return objective
