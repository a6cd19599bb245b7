"""What discrete flow matching learns: the posterior of the data given a noised state."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Generator, Tensor

from neurise.modeling.joint import Denoiser, JointObjective
from neurise.models._dfm.bound import integrated
from neurise.models._dfm.path import Path
from neurise.networks.parts.layers import one_hot
from neurise.rows import Batch
from neurise.training.objective import Prediction


class Example(NamedTuple):
    """A noised row: what the network is shown, and the data it should find."""

    v: Tensor  # (n,): the root of the noised share 1 − κ
    x: Tensor  # (n, sites)
    y: Tensor | None  # (n,)
    x_1: Tensor  # (n, sites)


@dataclass(frozen=True)
class Posterior:
    r"""The learnt :math:`\hat p_i(a \mid x_t) = P(x_{1,i} = a \mid x_t)`, of which a network f gives what is not known beforehand.

    Uniform source: by Bayes' rule the token that a site holds enters by its likelihood,

    .. math:: \hat p_i(a \mid x_t) \propto e^{f_{i,a}} \Big(\kappa\,1\{a = x_{t,i}\} + \frac{1 - \kappa}{p}\Big),

    so :math:`\hat p_i` goes over into :math:`\delta_{x_{t,i}}` as κ → 1 whatever the network says: the integral of the bound
    converges. Mask source: a token is the data, :math:`\hat p_i = \delta_{x_{t,i}}`, and :math:`\hat p_i = \mathrm{softmax}(f_i)`
    at a mask.
    """

    denoiser: Denoiser
    path: Path

    def log(self, network: Prediction, noised: Tensor, x: Tensor, y: Tensor | None) -> Tensor:
        """Return the logarithm of the posterior, (n, sites, states); ``noised`` is 1 − κ, (n,) or (1,)."""
        logits = network(self.path.time(noised), x, y)
        states = self.denoiser.space.states
        held = one_hot(x, states, logits.dtype)
        if self.path.source == "mask":
            return torch.where((x == states)[..., None], logits.log_softmax(-1), held.log())
        space = self.denoiser.space
        if space.sizes is None:
            evidence = torch.log1p(states * (1 - noised) / noised).to(logits.dtype)[:, None, None]
        else:  # p is the size of the site's own alphabet
            sizes = space.allowed(x.device).sum(1)
            evidence = torch.log1p(sizes * ((1 - noised) / noised)[:, None]).to(logits.dtype)[..., None]
        return (logits + evidence * held).log_softmax(-1)

    def accurate_log(self, noised: Tensor, x: Tensor, y: Tensor | None) -> Tensor:
        """Return it in float64 from the denoiser's own network: near the data a small probability is divided by a small 1 − κ."""

        def network(*inputs: Any) -> Tensor:
            logits: Tensor = self.denoiser.network(*inputs).double()
            return logits

        return self.log(network, noised, x, y)


def generalised_kl(log_p: Tensor, x: Tensor, x_1: Tensor) -> Tensor:
    r"""Loss of each site without its factor :math:`\dot\kappa / (1 - \kappa)`, (n, sites):

    .. math:: -\hat p(x_t) + \delta - (1 - \delta) \log \hat p(x_1), \qquad \delta = 1\{x_t = x_1\}.

    It is written with :math:`1 - \hat p(x_t)` as a sum over the other tokens, which does not cancel near the data.
    """
    held = one_hot(x, log_p.shape[-1], log_p.dtype)
    leave = ((1 - held) * log_p.exp()).sum(-1)
    return torch.where(x == x_1, leave, leave - 1 - _pick(log_p, x_1))


def cross_entropy(log_p: Tensor, x_1: Tensor) -> Tensor:
    r"""Return :math:`-\log \hat p(x_1)` of each site, (n, sites). It is 0 at a site that a mask source has left as it was."""
    return -_pick(log_p, x_1)


@dataclass(frozen=True)
class PosteriorObjective(JointObjective):
    r"""Learn the posterior at times with :math:`1 - \kappa = v^2`, v uniform in (0, 1].

    The generalised Kullback-Leibler loss has the weight :math:`\dot\kappa / (1 - \kappa)\,ds = (2/v)\,dv`, and a site is noised
    with probability :math:`v^2`: its variance is finite. With times uniform in s it is not. Among :math:`1 - \kappa = v^r` it
    goes like :math:`r^2 / (r - 1)`, which is least at r = 2.
    """

    path: Path
    loss: str

    @property
    def posterior(self) -> Posterior:
        """Return the posterior."""
        return Posterior(self.denoiser, self.path)

    def draw(self, batch: Batch, *, generator: Generator) -> Example:
        """Noise each row to a time of its own. Times are stratified and never 0, where there is nothing to learn."""
        x, y, n = batch.x, batch.y, len(batch.x)
        v = (torch.arange(1, n + 1, device=x.device) - torch.rand(n, generator=generator, device=x.device)) / n
        return Example(v, self.denoiser.corrupt(x, 1 - v**2, generator=generator), y, x)

    def losses(self, network: Prediction, drawn: Any) -> Tensor:
        """Return the chosen loss."""
        if self.loss == "cross_entropy":
            return self.scores(network, drawn)
        v, x, y, x_1 = drawn
        loss = self._total(generalised_kl(self.posterior.log(network, v**2, x, y), x, x_1))
        weighted: Tensor = loss * 2 / v
        return weighted

    def scores(self, network: Prediction, drawn: Any) -> Tensor:
        """Return the cross-entropy: a proper score, whatever the training loss, so that losses can be compared by it."""
        v, x, y, x_1 = drawn
        return self._total(cross_entropy(self.posterior.log(network, v**2, x, y), x_1))

    def bound(self, x_1: Tensor, y: Tensor | None, *, generator: Generator) -> Tensor:
        r"""One unbiased draw of a lower bound on the log-likelihood of each row, in nats, (N,) float64, on the CPU.

        With :math:`\ell_i` the :func:`generalised_kl` of site i and the substitution :math:`1 - \kappa = v^2`,

        .. math::
            \log p(x_1) \ge -\int_0^1 \mathbb{E} \sum_i \ell_i\, \frac{\dot\kappa}{1 - \kappa}\, ds
            = -\int_0^1 \frac{2}{v}\, \mathbb{E} \sum_i \ell_i\, dv.

        Nothing is cut off at either end. p is the law of the sampler with infinitely many steps. (Noise is drawn in float32, so
        the chance that a site is noised is off by up to 2^-24: in the sum about a millionth of a nat per site.)
        """

        def loss(v: Tensor, clean: Tensor, labels: Tensor | None) -> Tensor:
            x = self.denoiser.corrupt(clean, 1 - v**2, generator=generator)
            log_p = self.posterior.accurate_log(v**2, x, labels)
            return self._total(generalised_kl(log_p, x, clean)) * 2 / v

        return integrated(self.denoiser, loss, x_1, y, generator=generator)

    def _total(self, losses: Tensor) -> Tensor:
        """Sum over the sites that vary."""
        return torch.where(self.denoiser.varies, losses, 0.0).sum(-1)


def _pick(values: Tensor, x: Tensor) -> Tensor:
    return values.gather(-1, x.long()[..., None]).squeeze(-1)
