"""Discrete flow matching (Gat et al. 2024)."""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Generator, Tensor

from neurise import checks
from neurise.checks import is_number
from neurise.modeling.joint import JointModel, Noise
from neurise.modeling.renoising import RenoisingChain
from neurise.models._dfm.objective import Posterior, PosteriorObjective
from neurise.models._dfm.path import JumpWalk, Path
from neurise.networks.parts.layers import one_hot
from neurise.noise.absorbing import Absorbing
from neurise.noise.uniform import Uniform
from neurise.training.objective import Objective

SOURCES: dict[str, type[Noise]] = {"mask": Absorbing, "uniform": Uniform}
CHOICES: dict[str, Collection[str]] = {
    "source": SOURCES,
    "loss": ("cross_entropy", "generalised_kl"),
    "jump": ("hazard", "euler"),
    "grid": ("even", "time"),
}


@dataclass(frozen=True)
class JumpChain(RenoisingChain):
    r"""Every site stays, or jumps with probability λ to a draw from its posterior:

    .. math:: K(a \mid x) = (1 - \lambda)\,1\{a = x_i\} + \lambda\,\hat p_i(a \mid x).
    """

    walk: JumpWalk

    def log_step(self, step: int, x: Tensor, y: Tensor | None) -> Tensor:
        """Return the logarithm of the law of each site after a step, (n, sites, tokens) float64."""
        path, after = self.walk.path, self.walk.noised(step - 1)
        jump = self.walk.jump_probability(step, self.too_far(after))
        noised = torch.full((1,), self.walk.noised(step), dtype=torch.float64, device=x.device)
        log_p = Posterior(self.denoiser, path).accurate_log(noised, x, y)
        if path.source == "mask":
            log_p = torch.nn.functional.pad(log_p, (0, 1), value=-math.inf)  # no jump leads to the mask
        held = one_hot(x, self.tokens, log_p.dtype).log()
        law = torch.logaddexp(_log(1 - jump) + held, _log(jump) + log_p)
        return self.denoiser.settled(self.renoised(law, after))


@dataclass(kw_only=True, eq=False, repr=False)
class DFM(JointModel):
    """Discrete flow matching: noise jumps to data, site by site, with the posterior of the data given the whole state.

    A network learns the posterior of each site's data given a state in which every site holds data with probability
    κ = s^exponent, and noise otherwise; s is 1 − t, the method's own time. Sites that jump in the same step do not see each
    other, so the law of the samples comes near the learnt one like 1 / ``sampling_steps``.

    ``elbo`` bounds the likelihood of the sampler with infinitely many steps. For the mask source the bound is tight where
    the network is. For the uniform source it is a bound but never tight, not even for a perfect network: do not rank models
    by it.

    Args:
        source: the noise that samples start from, "mask" or "uniform".
        exponent: of the path κ = s^exponent. It sets the time that the network is shown, the grid "time" and the rate of "euler";
            training times are uniform in the root of 1 − κ whatever it is.
        loss: "cross_entropy" of the data, or "generalised_kl", which is the bound's integrand.
        jump: "hazard", the probability that a site jumps during a step; or "euler", from the rate at its beginning, which
            converges more slowly. With an exponent above 1 its first step from s = 0 never moves.
        grid: "even" spreads the jumps over the steps; "time" has steps that are equal in s. With exponent 2 and the exact
            posterior "even" is a fifth to a third nearer to the data for masks, and more than twice as near for uniform noise.
        sampling_steps: how many steps a sample takes, each with one evaluation of the network.
        renoise: how much is noised again on the way, so that what was drawn early may still change: per step, a share of the
            sites that is renoise / sampling_steps times the present share of noise. With the mask source this is remasking.
        width, depth: size of the network.
        order: the sites in the order in which the model takes them.
        alphabet: all symbols, where the sample may lack some.
        steps: how long to train where ``fit`` is given neither ``max_steps`` nor ``max_seconds``.
        training: the training loop, a group (:class:`neurise.Training`).

    >>> import neurise
    >>> X = [[0, 0, 1], [1, 1, 0], [0, 0, 0], [1, 1, 1]] * 25
    >>> model = neurise.DFM(width=8, steps=5).fit(X, verbose=False)
    >>> model.sample(4, seed=0).shape
    (4, 3)
    """

    changeable: ClassVar[tuple[str, ...]] = ("jump", "grid", "sampling_steps", "renoise")

    source: str = "mask"
    exponent: float = 2.0
    loss: str = "cross_entropy"
    jump: str = "hazard"
    grid: str = "even"
    sampling_steps: int = 256
    renoise: float = 0.0

    def _build(self) -> Objective:
        for name in ("source", "loss"):
            self._require(name)
        if not is_number(self.exponent) or not 0 < self.exponent < math.inf:
            raise ValueError(f"exponent must be a positive number, got {self.exponent!r}")
        path = Path(self.source, float(self.exponent))
        self._walk(path)
        return PosteriorObjective(self._denoiser(SOURCES[self.source](self.schema_.space)), path, self.loss)

    def _walk(self, path: Path) -> JumpWalk:
        """Check how to sample: before training, and again before each use, for it may be changed in between."""
        for name in ("jump", "grid"):
            self._require(name)
        checks.not_negative("renoise", self.renoise)
        return JumpWalk(
            path, checks.count("sampling_steps", self.sampling_steps, checks.MOST_STEPS), self.jump, self.grid
        )

    def _chain(self) -> JumpChain:
        walk = self._walk(self._learnt.path)
        return JumpChain(self._learnt.denoiser, walk.num_steps, walk, renoise=self.renoise)

    def _elbo(self, x: Tensor, y: Tensor | None, generator: Generator) -> Tensor:
        return self._learnt.bound(x, y, generator=generator)

    def _require(self, name: str) -> None:
        checks.one_of(name, getattr(self, name), CHOICES[name])

    @property
    def _learnt(self) -> PosteriorObjective:
        objective: PosteriorObjective = self.objective_  # type: ignore[assignment]
        return objective


def _log(probability: float) -> float:
    return math.log(probability) if probability > 0 else -math.inf
