"""UDLM: uniform diffusion in continuous time that predicts the data (Schiff et al. 2024)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Generator, Tensor

from neurise import checks
from neurise.modeling.joint import JointModel
from neurise.models._sedd.bound import elbo
from neurise.models._sedd.schedule import LogLinear
from neurise.models._sedd.score import UniformScore
from neurise.models.sedd import ScoreChain, ScoreEntropy
from neurise.noise.uniform import Uniform
from neurise.space import possible
from neurise.training.objective import Objective


class PredictedScore(UniformScore):
    r"""The score that belongs to a prediction :math:`\pi_i = \mathrm{softmax}(f_i)` of the data:

    .. math:: s_y = \frac{\bar\pi_{i,y}}{\bar\pi_{i,x_i}}, \qquad
        \bar\pi_i = \alpha\,\pi_i + \frac{1 - \alpha}{p}, \qquad \alpha = e^{-\sigma}.

    Score entropy in these terms is the published bound,

    .. math::
        \frac1p \Big[\frac{1}{\bar\pi_x} - \frac{1}{\bar\delta_x}
            + \sum_y \frac{\bar\delta_y}{\bar\delta_x} \log \frac{\bar\pi_x\,\bar\delta_y}{\bar\pi_y\,\bar\delta_x}\Big],

    with :math:`\bar\delta` the same mixture for the data itself. It is least, and tight, at
    :math:`\pi_i = P(x_{0,i} \mid x_{t,-i})`. Every score is that of some law, so that the analytic step, which is the posterior
    :math:`q(x_{t-h} \mid x_t, \pi)`, never meets a negative number.
    """

    def log_score(self, output: Tensor, sigma: Tensor, x: Tensor) -> Tensor:
        """Return the logarithm of the ratio of the mixtures, 0 at the present token."""
        log_spread = torch.log(-torch.expm1(-sigma)[:, None] / self.sizes(x.device))  # (n, 1) or (n, sites)
        kept = output.log_softmax(-1) - sigma.to(output.dtype)[:, None, None]
        mixed = torch.logaddexp(kept, log_spread.to(output.dtype)[..., None])
        present = mixed.gather(-1, x.long()[..., None])
        return super().log_score(possible(mixed - present, self.noise.space), sigma, x)

    def entropy(self, output: Tensor, sigma: Tensor, x: Tensor, x_0: Tensor) -> Tensor:
        """Return the score entropy of the scores of the prediction."""
        return super().entropy(self.log_score(output, sigma, x), sigma, x, x_0)


@dataclass(kw_only=True, eq=False, repr=False)
class UDLM(JointModel):
    r"""Uniform diffusion in continuous time, reversed by a prediction of the data.

    The network says what each site was before the noise, given the other sites. Its loss is the bound of the likelihood,
    the divergence between the noise given the data and the reversed process: that of :class:`SEDD` with uniform noise, but for
    scores that come from a prediction. Unlike the bound of :class:`DFM` with the uniform source it is tight for a perfect
    network, up to the noise that is left at the start. Sites that change in the same step do not see each other, so the law
    of the samples comes near the learnt one like 1 / ``sampling_steps``.

    Args:
        sampling_steps: how many steps lead from noise to the last one, which denoises; each evaluates the network once.
        renoise: how much is noised again on the way, so that what was drawn early may still change: per step, a share of the
            sites that is renoise / sampling_steps times the present share of noise.
        width, depth: size of the network.
        order: the sites in the order in which the model takes them.
        alphabet: all symbols, where the sample may lack some.
        steps: how long to train where ``fit`` is given neither ``max_steps`` nor ``max_seconds``.
        training: the training loop, a group (:class:`neurise.Training`).

    >>> import neurise
    >>> X = [[0, 0, 1], [1, 1, 0], [0, 0, 0], [1, 1, 1]] * 25
    >>> model = neurise.UDLM(width=8, steps=5).fit(X, verbose=False)
    >>> model.sample(4, seed=0).shape
    (4, 3)
    """

    changeable: ClassVar[tuple[str, ...]] = ("sampling_steps", "renoise")

    sampling_steps: int = 256
    renoise: float = 0.0

    def _build(self) -> Objective:
        self._num_steps()
        noise = Uniform(self.schema_.space)
        return ScoreEntropy(self._denoiser(noise), PredictedScore(noise), LogLinear())

    def _num_steps(self) -> int:
        """Check how to sample, and return the number of steps, the last one counted."""
        checks.not_negative("renoise", self.renoise)
        return checks.count("sampling_steps", self.sampling_steps, checks.MOST_STEPS) + 1

    def _chain(self) -> ScoreChain:
        learnt, num_steps = self._learnt, self._num_steps()
        return ScoreChain(learnt.denoiser, num_steps, learnt.score, learnt.schedule, "analytic", renoise=self.renoise)

    def _elbo(self, x: Tensor, y: Tensor | None, generator: Generator) -> Tensor:
        learnt = self._learnt
        return elbo(learnt.denoiser, learnt.score, learnt.schedule, x, y, generator=generator)

    @property
    def _learnt(self) -> ScoreEntropy:
        objective: ScoreEntropy = self.objective_  # type: ignore[assignment]
        return objective
