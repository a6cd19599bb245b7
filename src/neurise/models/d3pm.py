"""D3PM: structured denoising diffusion in discrete spaces (Austin et al. 2021)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple

import torch
from torch import Generator, Tensor

from neurise import checks, discovery
from neurise.checks import is_number
from neurise.modeling.joint import Denoiser, JointModel, JointObjective, Noise
from neurise.modeling.renoising import RenoisingChain
from neurise.models._d3pm.absorbing import AbsorbingSteps, linear_keep
from neurise.models._d3pm.bound import elbo
from neurise.models._d3pm.steps import Steps
from neurise.models._d3pm.uniform import UniformSteps, cosine_keep
from neurise.noise.absorbing import Absorbing
from neurise.noise.uniform import Uniform
from neurise.rows import Batch
from neurise.training.objective import Objective, Prediction

POSTERIORS = ("exact", "published")
LOSSES = ("bound", "cross_entropy")


class Example(NamedTuple):
    """A row, and the same row noised by t steps."""

    t: Tensor  # (n,)
    x_t: Tensor  # (n, sites)
    y: Tensor | None  # (n,)
    x_0: Tensor  # (n, sites)


@dataclass(frozen=True)
class D3PMObjective(JointObjective):
    r"""One time per example: :math:`c_1 L_t + c_2\,\mathrm{CE}_t`, summed over sites.

    :math:`L_t = \mathrm{KL}(q(x_{t-1} \mid x_t, x_0) \,\|\, p_\theta(x_{t-1} \mid x_t))` is the term of the bound and
    :math:`\mathrm{CE}_t = -\log \pi_{x_0}` that of the prediction π of :math:`x_0`. With the exact posterior both are minimal at
    :math:`\pi = P(x_0 \mid x_t)`.
    """

    steps: Steps
    bound_weight: float
    ce_weight: float

    def draw(self, batch: Batch, *, generator: Generator) -> Example:
        """Noise each row to a time of its own. Times are stratified: a batch covers all of them evenly."""
        x, n, last = batch.x, len(batch.x), self.steps.num_steps
        place = torch.arange(n, device=x.device) + torch.rand(n, generator=generator, device=x.device)
        t = 1 + (place * (last / n)).long().clamp(max=last - 1)
        x_t = self.denoiser.corrupt(x, self.steps.keep[t].float(), generator=generator)
        return Example(t, x_t, batch.y, x)

    def losses(self, network: Prediction, drawn: Any) -> Tensor:
        """Return the weighted sum of both terms."""
        t, x_t, y, x_0 = drawn
        log_clean = self.steps.log_clean(network(t / self.steps.num_steps, x_t, y), t, x_t)
        total = torch.zeros(x_0.shape, dtype=log_clean.dtype, device=x_0.device)
        if self.bound_weight:
            total = total + self.bound_weight * self.steps.divergence(log_clean, t, x_t, x_0)
        if self.ce_weight:
            total = total + self.ce_weight * self.steps.cross_entropy(log_clean, x_0)
        return torch.where(self.denoiser.varies, total, 0.0).sum(-1)

    def scores(self, network: Prediction, drawn: Any) -> Tensor:
        """Return the cross-entropy, whatever the loss; with the published posterior, minus the bound, in nats.

        With the exact posterior both have one minimum, and the bound is far noisier: most of it rests on the few sites
        that are noised at small t. With the published one the best prediction is not the best sampler.
        """
        t, x_t, y, x_0 = drawn
        log_clean = self.steps.log_clean(network(t / self.steps.num_steps, x_t, y).double(), t, x_t)
        if self.steps.consistent:
            total = self.steps.cross_entropy(log_clean, x_0)
        else:
            total = self.steps.num_steps * self.steps.divergence(log_clean, t, x_t, x_0) + self.steps.start_divergence()
        return torch.where(self.denoiser.varies, total, 0.0).sum(-1)


@dataclass(frozen=True)
class D3PMChain(RenoisingChain):
    """The T steps backwards, from pure noise; the last one is drawn like all others."""

    steps: Steps

    def log_step(self, step: int, x: Tensor, y: Tensor | None) -> Tensor:
        """Return the law of x_{t−1} given x_t, t = step + 1, in float64: a thousand steps add up their rounding."""
        t = torch.full((1,), step + 1, device=x.device)
        logits = self.denoiser.network(t / self.num_steps, x, y).double()
        log_clean = self.steps.log_clean(logits, t, x)
        if not self.renoise:
            return self.denoiser.settled(self.steps.log_step(log_clean, t, x))
        noised = 1 - float(self.steps.keep[step])
        keep = self.steps.keep.clone()
        keep[step] = 1 - self.too_far(noised)
        law = replace(self.steps, keep=keep).log_step(log_clean, t, x)
        return self.denoiser.settled(self.renoised(law, noised))


def make_steps(noise: Noise, timesteps: int, *, posterior: str, offset: bool, device: torch.device) -> Steps:
    """Choose the schedule and the reversal that go with a noise."""
    last, states = checks.count("timesteps", timesteps, checks.MOST_STEPS), noise.space.states
    if posterior not in POSTERIORS:
        raise ValueError(f"unknown posterior {posterior!r}; there are: {', '.join(POSTERIORS)}")
    if isinstance(noise, Absorbing):
        return AbsorbingSteps(states, linear_keep(last, device))
    own = None if noise.space.sizes is None else noise.space
    return UniformSteps(states, cosine_keep(last, device), offset, posterior == "published", own)


@dataclass(kw_only=True, eq=False, repr=False)
class D3PM(JointModel):
    r"""Discrete diffusion that noises all sites at once, and learns to predict the data from the noised state.

    Its steps treat sites as independent given the state before, so that even a perfect network leaves an error that falls
    like 1/``timesteps``.

    Args:
        noise: "uniform" (cosine schedule) or "absorbing" (a mask; a site is masked by time t with probability t/T).
        timesteps: T, of the noise and of the sampler.
        posterior: "exact" is :math:`p(x_{t-1} = b \mid x_t) = Q_t[b, x_t] \sum_a \pi_a \bar Q_{t-1}[a, b] / \bar Q_t[a, x_t]`.
            "published" leaves out :math:`1/\bar Q_t[a, x_t]` and normalises: under uniform noise the two terms of the loss
            then want different things, and a perfect prediction does not give the data however large T is
            (``benchmarks/d3pm_posterior.py`` prints both curves). Under absorbing noise both are the same.
        loss: "bound" is the bound's term + λ · cross-entropy, as published; "cross_entropy" is cross-entropy + λ · the bound's
            term.
        auxiliary_weight: λ, how much the other one counts.
        offset: add what a site's own noised value says of it to the logits, so that the network learns what the other
            sites say. It changes no minimum; absorbing noise has no use for it.
        renoise: how much is noised again on the way, so that what was drawn early may still change: per step, a share of the
            sites that is renoise / timesteps times the present share of noise. With absorbing noise this is remasking.
        width, depth: size of the network.
        order: changes nothing but the order of the network's inputs: all sites are noised at once.
        alphabet: all symbols, where the sample may lack some.
        steps: how long to train where ``fit`` is given neither ``max_steps`` nor ``max_seconds``.
        training: the training loop, a group (:class:`neurise.Training`).

    >>> import neurise
    >>> X = [[0, 0, 1], [1, 1, 0], [0, 0, 0], [1, 1, 1]] * 25
    >>> model = neurise.D3PM(width=8, steps=5).fit(X, verbose=False)
    >>> model.sample(4, seed=0).shape
    (4, 3)
    """

    changeable: ClassVar[tuple[str, ...]] = ("renoise",)

    noise: str = "uniform"
    timesteps: int = 1000
    posterior: str = "exact"
    loss: str = "bound"
    auxiliary_weight: float = 0.001
    offset: bool = True
    renoise: float = 0.0

    def _build(self) -> Objective:
        if self.loss not in LOSSES:
            raise ValueError(f"unknown loss {self.loss!r}; there are: {', '.join(LOSSES)}")
        if not is_number(self.auxiliary_weight) or not 0 <= self.auxiliary_weight < float("inf"):
            raise ValueError(f"auxiliary_weight must be a number, not negative, got {self.auxiliary_weight!r}")
        checks.not_negative("renoise", self.renoise)
        noise = self._noise()
        steps = make_steps(
            noise,
            self.timesteps,
            posterior=self.posterior,
            offset=checks.flag("offset", self.offset),
            device=self.device_,
        )
        weights = (1.0, float(self.auxiliary_weight))
        bound_weight, ce_weight = weights if self.loss == "bound" else weights[::-1]
        return D3PMObjective(self._denoiser(noise), steps, bound_weight, ce_weight)

    def _noise(self) -> Noise:
        kind = discovery.find("neurise.noise", self.noise)
        if kind not in (Uniform, Absorbing):
            raise ValueError(
                f"noise {self.noise!r} noises one site at a time, and D3PM all at once: use uniform or absorbing; NeurISE and "
                "GGM are the models for one site at a time"
            )
        noise: Noise = kind(self.schema_.space)
        return noise

    def _parts(self) -> tuple[Denoiser, Steps]:
        objective: D3PMObjective = self.objective_  # type: ignore[assignment]
        return objective.denoiser, objective.steps

    def _chain(self) -> D3PMChain:
        denoiser, steps = self._parts()
        renoise = checks.not_negative("renoise", self.renoise)  # again: it may be changed after training
        return D3PMChain(denoiser, steps.num_steps, steps, renoise=renoise)

    def _elbo(self, x: Tensor, y: Tensor | None, generator: Generator) -> Tensor:
        return elbo(*self._parts(), x, y, generator=generator)
