"""What masked diffusion with learnt schedules minimises: its bound, in the network and in the schedules."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Generator, Tensor

from neurise.modeling.joint import JointObjective
from neurise.models._dfm.bound import integrated
from neurise.rows import Batch
from neurise.training.objective import Prediction


class Example(NamedTuple):
    """A row and the chances that decide what of it is masked: which sites are depends on the schedules."""

    v: Tensor  # (n,): the time is a power of it
    level: Tensor  # (n, masks, sites): a site is masked where this is below the probability of a mask
    y: Tensor | None  # (n,)
    x_0: Tensor  # (n, sites)


class Terms(NamedTuple):
    """The bound of rows that were masked in one way or several, (n, masks) each."""

    loss: Tensor  # its integrand in v
    log_chance: Tensor  # logarithm of the probability that just these sites are masked


@dataclass(frozen=True)
class MaskingObjective(JointObjective):
    r"""Site i with the token a is masked by time t with probability :math:`t^{w_{i,a}}`. With :math:`\mu` the prediction,

    .. math::
        -\log p(x_0) \le \int_0^1 \frac{dt}{t}\; \mathbb{E} \sum_{i\ \text{masked}}
        \Big[\sum_a (w_{i,a} - w_{i,x_{0,i}})\,\mu_{i,a} - w_{i,x_{0,i}} \log \mu_{i,x_{0,i}}\Big].

    Times are :math:`t = v^k`, v uniform, so that :math:`dt/t = k\,dv/v`. The variance of a site's term goes like
    :math:`k^2 / (kw - 1)`: k is one and a half times the greatest exponent that there may be, which keeps it finite for the
    least.

    The schedules decide what is masked, so that their gradient has a part from that choice. Each row is masked twice at one
    time, and with the losses :math:`L_1, L_2` and the probabilities :math:`q_1, q_2` of the two choices this part is
    :math:`\tfrac12 (L_1 - L_2)\,\nabla(\log q_1 - \log q_2)`: unbiased, each loss being the baseline of the other. Where all
    schedules are the same (``spread`` = 1) there is nothing to choose, and rows are masked once.
    """

    spread: float

    @property
    def power(self) -> float:
        """Return k."""
        return 1.5 * self.spread

    @property
    def masks(self) -> int:
        """Return how often each row is masked at its time."""
        return 1 if self.spread == 1 else 2

    @property
    def bytes_per_example(self) -> int:
        """As much as a row takes for each time it is masked."""
        return self.masks * super().bytes_per_example

    def draw(self, batch: Batch, *, generator: Generator) -> Example:
        """Draw a time for each row, and for each of its sites how early it is masked. Times are stratified and never 0."""
        x, n = batch.x, len(batch.x)
        v = (torch.arange(1, n + 1, device=x.device) - torch.rand(n, generator=generator, device=x.device)) / n
        level = torch.rand((n, self.masks, x.shape[-1]), generator=generator, device=x.device)
        return Example(v, level, batch.y, x)

    def losses(self, network: Prediction, drawn: Any) -> Tensor:
        """Return the bound's integrand, with a term of value 0 that has the gradient of the choice of masks."""
        loss, log_chance = self.terms(network, drawn)
        total = loss.mean(-1)
        if self.masks == 1:
            return total
        gap, chance = (part[:, 0] - part[:, 1] for part in (loss, log_chance))
        return total + gap.detach() / 2 * (chance - chance.detach())

    def scores(self, network: Prediction, drawn: Any) -> Tensor:
        """Return the bound's integrand: in the mean, minus the bound in nats."""
        return self.terms(network, drawn).loss.mean(-1)

    def terms(self, network: Prediction, drawn: Any) -> Terms:
        """Mask rows by the network's schedules and ask it about them."""
        v, level, y, x_0 = drawn
        masks, states = level.shape[1], self.denoiser.space.states
        log_w = network()
        chosen = x_0.long()[..., None]
        w, own = log_w.exp(), log_w.expand(*x_0.shape, states).gather(-1, chosen).squeeze(-1).exp()
        log_masked = own * (self.power * v.to(own.dtype).log())[:, None]  # log t^w, (n, sites)
        masked = (level < log_masked.detach().exp()[:, None]) & self.denoiser.varies  # (n, masks, sites)
        x = torch.where(masked, states, x_0[:, None].to(torch.int16)).flatten(0, 1)
        again = None if y is None else y.repeat_interleave(masks)
        log_mu = network(v.repeat_interleave(masks), x, again).to(w.dtype).log_softmax(-1)
        log_mu = log_mu.view(-1, masks, *log_mu.shape[1:])  # (n, masks, sites, states)
        found = log_mu.gather(-1, chosen[:, None].expand(-1, masks, -1, -1)).squeeze(-1)
        moved = ((w - own[:, None, :, None]) * log_mu.exp()).sum(-1)
        loss = torch.where(masked, moved - own[:, None] * found, 0.0).sum(-1) * (self.power / v.to(own.dtype))[:, None]
        # Only what a site that varies did counts: at t = 1 the logarithm of the other has no gradient.
        kept = torch.where(masked | ~self.denoiser.varies, -1.0, log_masked[:, None])
        chance = torch.where(masked, log_masked[:, None], torch.log1p(-kept.exp()))
        return Terms(loss, torch.where(self.denoiser.varies, chance, 0.0).sum(-1))

    def bound(self, x: Tensor, y: Tensor | None, *, generator: Generator) -> Tensor:
        """One unbiased draw of the bound of each row, in nats, (N,) float64, on the CPU. Nothing is cut off."""

        def accurate(*inputs: Any) -> Tensor:
            answer: Tensor = self.denoiser.network(*inputs).double()
            return answer

        def loss(v: Tensor, clean: Tensor, labels: Tensor | None) -> Tensor:
            shape = (len(clean), 1, clean.shape[-1])
            level = torch.rand(shape, dtype=torch.float64, generator=generator, device=clean.device)
            return self.terms(accurate, Example(v, level, labels, clean)).loss.squeeze(-1)

        return integrated(self.denoiser, loss, x, y, generator=generator)
