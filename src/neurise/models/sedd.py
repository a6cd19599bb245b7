"""SEDD: score entropy discrete diffusion (Lou et al. 2024)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, NamedTuple

import torch
from torch import Generator, Tensor

from neurise import checks
from neurise.modeling.joint import JointModel, JointObjective, Noise
from neurise.modeling.renoising import RenoisingChain
from neurise.models._sedd.bound import elbo
from neurise.models._sedd.forms import FORMS
from neurise.models._sedd.schedule import Geometric, LogLinear, Schedule
from neurise.models._sedd.score import AbsorbingScore, Score, UniformScore
from neurise.networks.joint_mlp import INPUTS, JointMLP
from neurise.noise.absorbing import Absorbing
from neurise.noise.uniform import Uniform
from neurise.rows import Batch
from neurise.training.objective import Objective, Prediction

FIRST_TIME = 1e-3
"""Training sees the times from here to 1."""
LAST_TIME = 1e-5
"""Where the sampler has come to when it takes its last step, to the data."""

NOISES: dict[str, tuple[type[Noise], type[Score]]] = {
    "absorbing": (Absorbing, AbsorbingScore),
    "uniform": (Uniform, UniformScore),
}
SCHEDULES: dict[str, type[Schedule]] = {"loglinear": LogLinear, "geometric": Geometric}
CHOICES = {
    "noise": tuple(NOISES),
    "schedule": tuple(SCHEDULES),
    "sampler": ("analytic", "euler"),
    "scores": tuple(FORMS),
    "inputs": INPUTS,
}


class Example(NamedTuple):
    """A noised row: what the network is shown, and what it was made from."""

    t: Tensor  # (n,)
    sigma: Tensor  # (n,)
    x: Tensor  # (n, sites)
    weight: Tensor  # (n,)
    y: Tensor | None  # (n,)
    x_0: Tensor  # (n, sites)


@dataclass(frozen=True)
class ScoreEntropy(JointObjective):
    r"""Learn the log-scores by :math:`\int \sigma'(t)\,\mathbb{E}\,L\,dt`, t from 10⁻³ to 1, with L the score entropy of all sites.

    The published draw, t uniform with the weight :math:`\sigma'`, gives a few examples great weights. Here the score draws
    the noise (:meth:`Score.noised`) so that weights stay small: another variance, the same mean. The validation score
    is the loss itself. It is proper: but for times below 10⁻³ it bounds the log-likelihood.
    """

    score: Score
    schedule: Schedule

    def draw(self, batch: Batch, *, generator: Generator) -> Example:
        """Noise each row to a level of its own. Levels are stratified: a batch covers all of them evenly."""
        x, n, device = batch.x, len(batch.x), batch.x.device
        place = torch.arange(n, device=device) + torch.rand(n, generator=generator, device=device, dtype=torch.float64)
        first, end = (torch.full((1,), t, dtype=torch.float64, device=device) for t in (FIRST_TIME, 1.0))
        ends = self.schedule.sigma(first), self.schedule.sigma(end)
        noised = self.score.noised(self.denoiser, x, place / n, *ends, generator=generator)
        return Example(self.schedule.time(noised.sigma), *noised, batch.y, x)

    def losses(self, network: Prediction, drawn: Any) -> Tensor:
        """Return the score entropy of each row, weighted."""
        t, sigma, x, weight, y, x_0 = drawn
        entropy = self.score.entropy(network(t, x, y), sigma, x, x_0)
        loss: Tensor = weight.to(entropy.dtype) * (entropy * self.denoiser.varies).sum(-1)
        return loss

    def scores(self, network: Prediction, drawn: Any) -> Tensor:
        """Return the loss."""
        return self.losses(network, drawn)


@dataclass(frozen=True)
class ScoreChain(RenoisingChain):
    """Even steps of time from 1 to 10⁻⁵, and one more that undoes what noise is left."""

    score: Score
    schedule: Schedule
    sampler: str

    def log_step(self, step: int, x: Tensor, y: Tensor | None) -> Tensor:
        """Return the logarithm of the law of each site after a step, (n, sites, tokens) float64."""
        t = self._time(step)
        sigma = self.schedule.sigma(t)
        output = self.score.form.usable(self.denoiser.network(t, x, y).double())
        log_score = self.score.log_score(output, sigma, x)
        if step == 0:
            return self.denoiser.settled(self.score.denoised(log_score, sigma, x))
        end = self.schedule.sigma(self._time(step - 1))
        noised = -math.expm1(-float(end)) if self.renoise else 0.0  # a device is not waited for without need
        end = end + math.log1p(-self.again(noised))  # e^−σ rises by 1 / (1 − ρ), and falls by noise on a share ρ
        if self.sampler == "euler":
            log_law = self.score.euler(log_score, (t - self.schedule.time(end)) * self.schedule.rate(t), x)
        else:
            log_law = self.score.analytic(log_score, sigma - end, x)
        return self.denoiser.settled(self.renoised(log_law, noised))

    def _time(self, step: int) -> Tensor:
        """Time at the beginning of a step, (1,)."""
        t = LAST_TIME + (1 - LAST_TIME) * step / (self.num_steps - 1)
        return torch.full((1,), t, dtype=torch.float64, device=self.device)


@dataclass(kw_only=True, eq=False, repr=False)
class SEDD(JointModel):
    r"""Score entropy discrete diffusion: noise in continuous time, reversed by learnt ratios of probabilities.

    Noise touches every site at rate :math:`\sigma'(t)`. A network learns the logarithms of the ratios
    :math:`p_t(x \text{ with site } i \to y) / p_t(x)`, which are the rates of the reversed noise. Sites that change in the same
    step do not see each other, so the law of the samples comes near the learnt one like 1 / ``sampling_steps``.

    ``elbo`` bounds the likelihood of the sampler with infinitely many steps, and nothing is cut off at either end of time: it
    is tight where the network is, up to the noise that is left at the start of uniform chains.

    Args:
        noise: "absorbing" puts a mask in the place of a touched site, "uniform" a random token.
        schedule: how σ grows with t: "loglinear", or "geometric" from 10⁻⁴ to 20.
        sampler: "analytic" reverses the noise of each site exactly if the others stay; "euler" jumps by the rates at the
            beginning of the step, of which there must be many under uniform noise.
        sampling_steps: how many steps lead from noise to the last one, which denoises; each evaluates the network once.
        renoise: how much is noised again on the way, so that what was drawn early may still change: per step, a share of the
            sites that is renoise / sampling_steps times the present share of noise. With absorbing noise this is remasking.
        scores: what the network's output z stands for, up to the same scale. "log" is a log-score, s = e^z. "softplus" has a last
            layer that makes scores positive, s = log(1 + e^z) but for a shift. "raw" is the score itself, s = 1 + z: nothing
            keeps it positive, and its training diverges as soon as the loss takes the logarithm of a negative one.
        inputs: how the network is shown tokens: "one_hot", or one number per site, "spins" from −1 to 1 with 0 for a mask,
            or "integers", where a mask is the token after the last.
        width, depth: size of the network.
        order: the sites in the order in which the model takes them.
        alphabet: all symbols, where the sample may lack some.
        steps: how long to train where ``fit`` is given neither ``max_steps`` nor ``max_seconds``.
        training: the training loop, a group (:class:`neurise.Training`).

    >>> import neurise
    >>> X = [[0, 0, 1], [1, 1, 0], [0, 0, 0], [1, 1, 1]] * 25
    >>> model = neurise.SEDD(width=8, steps=5).fit(X, verbose=False)
    >>> model.sample(4, seed=0).shape
    (4, 3)
    """

    changeable: ClassVar[tuple[str, ...]] = ("sampler", "sampling_steps", "renoise")

    noise: str = "absorbing"
    schedule: str = "loglinear"
    sampler: str = "analytic"
    sampling_steps: int = 256
    renoise: float = 0.0
    scores: str = "log"
    inputs: str = "one_hot"

    def _build(self) -> Objective:
        for name in CHOICES:
            self._require(name)
        self._walk()
        make_noise, make_score = NOISES[self.noise]
        noise = make_noise(self.schema_.space)
        denoiser = self._denoiser(noise, partial(JointMLP, inputs=self.inputs))
        return ScoreEntropy(denoiser, make_score(noise, FORMS[self.scores]), SCHEDULES[self.schedule]())

    def _chain(self) -> ScoreChain:
        learnt, num_steps = self._learnt, self._walk()  # again: how to sample may be changed after training
        return ScoreChain(learnt.denoiser, num_steps, learnt.score, learnt.schedule, self.sampler, renoise=self.renoise)

    def _walk(self) -> int:
        """Check how to sample, and return the number of steps, the last one counted."""
        self._require("sampler")
        checks.not_negative("renoise", self.renoise)
        return checks.count("sampling_steps", self.sampling_steps, checks.MOST_STEPS) + 1

    def _elbo(self, x: Tensor, y: Tensor | None, generator: Generator) -> Tensor:
        learnt = self._learnt
        return elbo(learnt.denoiser, learnt.score, learnt.schedule, x, y, generator=generator)

    @property
    def _learnt(self) -> ScoreEntropy:
        objective: ScoreEntropy = self.objective_  # type: ignore[assignment]
        return objective

    def _require(self, name: str) -> None:
        checks.one_of(name, getattr(self, name), CHOICES[name])
