"""What planned denoising learns: which sites are noise, and what a site was before it became noise."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Generator, Tensor
from torch.nn.functional import logsigmoid, softplus

from neurise.modeling.joint import Denoiser, JointObjective
from neurise.models._dfm.bound import integrated
from neurise.models._dfm.objective import generalised_kl
from neurise.networks.parts.layers import one_hot
from neurise.rows import Batch
from neurise.training.objective import Prediction


@dataclass(frozen=True)
class PlannedDenoiser(Denoiser):
    """A planner and a denoiser, which are one network (a :class:`PlannedMLP`), and the noise."""

    @property
    def bytes_per_row(self) -> int:
        """As much as for one of them, twice."""
        return 2 * super().bytes_per_row


class Example(NamedTuple):
    """A noised row: what the network is shown, and what it should find."""

    v: Tensor  # (n,): the root of the noised share
    x: Tensor  # (n, sites)
    redrawn: Tensor  # (n, sites) booleans: whether the noise redrew the site, be it as the token that it held
    y: Tensor | None  # (n,)
    x_0: Tensor  # (n, sites)


class Answers(NamedTuple):
    """What the planner and the denoiser say of rows."""

    log_odds: Tensor  # (n, sites): logarithm of ζ / (1 − ζ), with ζ the probability that the site is noise
    log_mu: Tensor  # (n, sites, states): law of the site's token before the noise, if it is noise

    @property
    def log_noise(self) -> Tensor:
        """Logarithm of ζ, (n, sites)."""
        return logsigmoid(self.log_odds)

    def log_moved(self, x: Tensor, log_go: Tensor) -> Tensor:
        r"""Return the logarithm of :math:`(1 - g_i)\,1\{a = x_i\} + g_i\,\mu_i(a)`, (n, sites, states); g may be one per row."""
        held = one_hot(x, self.log_mu.shape[-1], self.log_mu.dtype)
        log_stay = torch.log(-torch.expm1(log_go))
        return torch.logaddexp(log_stay[..., None] + held.log(), log_go[..., None] + self.log_mu)


@dataclass(frozen=True)
class PlannedObjective(JointObjective):
    r"""Learn both networks at times with the noised share :math:`m = v^2`, v uniform in (0, 1], by the published loss

    .. math::
        \int_0^1 \frac{dm}{m}\; \mathbb{E} \sum_i \Big[ -z_i \log \zeta_i - (1 - z_i) \log (1 - \zeta_i)
        - z_i \log \mu_i(x_{0,i}) \Big],

    where :math:`z_i` is 1 if site i was redrawn, and else 0: the binary cross-entropy of the planner, and the cross-entropy of
    the denoiser at noise. With :math:`dm/m = 2\,dv/v`, and noise of probability :math:`v^2`, its variance is finite.

    Let :math:`\pi_i` be the law of a site before the noise, given what the others hold after it. By Bayes' rule the minimum is

    .. math:: \frac{\zeta_i}{1 - \zeta_i} = \frac{m}{1 - m} \cdot \frac{1}{p\,\pi_i(x_i)}, \qquad \mu_i = \pi_i,

    p being the size of the site's alphabet. The planner's output for the token that the site holds takes the place of
    :math:`-\log\,p\,\pi_i(x_i)`: at first nothing but the time decides, and the integral converges whatever it says.
    """

    def answers(self, network: Prediction, noised: Tensor, x: Tensor, y: Tensor | None) -> Answers:
        """Ask both networks about rows x (n, sites) of which a share ``noised``, (n,) or (1,), is noise."""
        plan, logits = network(noised, x, y).unbind(-3)
        own = plan.gather(-1, x.long()[..., None]).squeeze(-1)
        prior = torch.log(noised) - torch.log1p(-noised)
        return Answers(own + prior[:, None], logits.log_softmax(-1))

    def accurate(self, noised: Tensor, x: Tensor, y: Tensor | None) -> Answers:
        """Return the answers in float64 from the denoiser's own network: small probabilities are divided by a small m."""

        def network(*inputs: Any) -> Tensor:
            outputs: Tensor = self.denoiser.network(*inputs).double()
            return outputs

        return self.answers(network, noised, x, y)

    def draw(self, batch: Batch, *, generator: Generator) -> Example:
        """Noise each row to a time of its own. Times are stratified and never 0, where there is nothing to learn."""
        x_0, n, device = batch.x, len(batch.x), batch.x.device
        v = (torch.arange(1, n + 1, device=device) - torch.rand(n, generator=generator, device=device)) / n
        redrawn = torch.rand(x_0.shape, generator=generator, device=device) < (v**2)[:, None]
        x = torch.where(redrawn, self.denoiser.start(n, generator=generator), x_0)
        return Example(v, x, redrawn, batch.y, x_0)

    def losses(self, network: Prediction, drawn: Any) -> Tensor:
        """Return the integrand of the loss of each row, as a density in v: both cross-entropies, times 2/v."""
        v, x, redrawn, y, x_0 = drawn
        log_odds, log_mu = self.answers(network, v**2, x, y)
        found = log_mu.gather(-1, x_0.long()[..., None]).squeeze(-1)
        planner = softplus(torch.where(redrawn, -log_odds, log_odds))
        loss: Tensor = self._total(planner - torch.where(redrawn, found, 0.0)) * 2 / v
        return loss

    def scores(self, network: Prediction, drawn: Any) -> Tensor:
        """Return the loss. It is a proper score, and bounds the log-likelihood."""
        return self.losses(network, drawn)

    def bound(self, x_0: Tensor, y: Tensor | None, *, generator: Generator) -> Tensor:
        r"""One unbiased draw of a lower bound on the log-likelihood of each row, in nats, (N,) float64, on the CPU.

        The chain that ζ and μ drive moves site i to the token a at the rate :math:`\zeta_i\,\mu_i(a)` per :math:`-d \log m`. The
        noise given :math:`x_0`, backwards, moves a site that differs from :math:`x_0` there, at the rate 1. The divergence
        of their paths is a bound:

        .. math::
            -\log p(x_0) \le \int_0^1 \frac{dm}{m}\; \mathbb{E} \sum_i \Big[ \zeta_i\,(1 - \mu_i(x_i))
            - 1\{x_i \ne x_{0,i}\} \big(1 + \log \zeta_i\,\mu_i(x_{0,i})\big) \Big].

        The published loss is a bound as well, and a looser one. It also counts moves that change nothing, and it has
        :math:`-\log(1 - \zeta)` in the place of the smaller ζ.
        """

        def loss(v: Tensor, clean: Tensor, labels: Tensor | None) -> Tensor:
            x = self.denoiser.corrupt(clean, 1 - v**2, generator=generator)
            return self.path_loss(v, x, labels, clean)

        return integrated(self.denoiser, loss, x_0, y, generator=generator)

    def path_loss(self, v: Tensor, x: Tensor, y: Tensor | None, x_0: Tensor) -> Tensor:
        """Return the bound's integrand as a density in v, (n,) float64."""
        answers = self.accurate(v**2, x, y)
        return self._total(generalised_kl(answers.log_moved(x, answers.log_noise), x, x_0)) * 2 / v

    def _total(self, losses: Tensor) -> Tensor:
        """Sum over the sites that vary."""
        return torch.where(self.denoiser.varies, losses, 0.0).sum(-1)
