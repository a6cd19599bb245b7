"""The concrete score under uniform and under absorbing noise: the loss that finds it, and the steps that it drives."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import Any, NamedTuple

import torch
from torch import Generator, Tensor

from neurise.modeling.joint import Denoiser, Noise
from neurise.models._sedd.forms import FORMS, Form

EVEN_SHARE = 0.1
"""Share of the examples of uniform noise whose level is drawn evenly in σ."""


class Noised(NamedTuple):
    r"""Rows with noise drawn for them: the mean of weight × score entropy is :math:`\int \mathbb{E}\,L\,d\sigma`."""

    sigma: Tensor  # (n,)
    x: Tensor  # (n, sites)
    weight: Tensor  # (n,)


class Score(ABC):
    r"""Log-scores :math:`\ell_y = \log\, p_t(x \text{ with site } i \to y) / p_t(x)`, (n, sites, states), of a noise process.

    σ is the total noise, (n,) or (1,). Laws are logarithms, (n, sites, tokens). ``form`` says how the output of a network stands
    for a score.
    """

    def __init__(self, noise: Noise, form: Form = FORMS["log"]) -> None:
        self.noise, self.form = noise, form

    def sizes(self, device: torch.device) -> Any:
        """Return p: a number, or one per site where they have alphabets of their own, (sites,) float64."""
        space = self.noise.space
        return space.states if space.sizes is None else space.allowed(device).sum(1).double()

    @abstractmethod
    def log_score(self, output: Tensor, sigma: Tensor, x: Tensor) -> Tensor:
        """Turn the output of a network into log-scores; those of the present tokens are 0."""

    @abstractmethod
    def entropy(self, output: Tensor, sigma: Tensor, x: Tensor, x_0: Tensor) -> Tensor:
        """Score entropy of each site, (n, sites), of the output of a network: zero at the score of the noise given x_0.

        Of positive scores it is never below. It is not a number where a score is negative whose logarithm it has.
        """

    @abstractmethod
    def analytic(self, log_score: Tensor, delta: Tensor, x: Tensor) -> Tensor:
        """Step back to where there is ``delta`` less noise, exactly so if there were one site alone."""

    @abstractmethod
    def euler(self, log_score: Tensor, jump: Tensor, x: Tensor) -> Tensor:
        """Step back by a first-order jump; ``jump`` is the length of the step times the rate of the noise."""

    @abstractmethod
    def denoised(self, log_score: Tensor, sigma: Tensor, x: Tensor) -> Tensor:
        """Step back to the data, where no mask is left."""

    @abstractmethod
    def noised(
        self, denoiser: Denoiser, x_0: Tensor, place: Tensor, first: Tensor, end: Tensor, *, generator: Generator
    ) -> Noised:
        """Noise each row to a level of its own, which rises from ``first`` to ``end`` with ``place`` (n,) from 0 to 1."""

    @abstractmethod
    def start_divergence(self, end: Tensor) -> Tensor:
        """KL of one site at the end of the noise to the start of the reverse chain, whatever its data."""


class AbsorbingScore(Score):
    r"""At a masked site the score is :math:`s_y = r\,P(x_{0,i} = y \mid \text{unmasked sites})`, :math:`r = 1/(e^\sigma - 1)`.

    Only masks were ever touched: unmasked sites have no loss and do not move.
    """

    def log_score(self, output: Tensor, sigma: Tensor, x: Tensor) -> Tensor:
        """Return log s − log(e^σ − 1) − log p: an output of 0 says that all tokens are equally likely."""
        log_scale = torch.log(torch.expm1(sigma)).to(output.dtype)[:, None, None] + self._log_size(output)
        log_score: Tensor = self.form.log(output) - log_scale
        return log_score.masked_fill(_is(x, self.noise.space.states), 0.0)

    def entropy(self, output: Tensor, sigma: Tensor, x: Tensor, x_0: Tensor) -> Tensor:
        r"""Return :math:`\sum_y s_y - r \log s_{x_0} + r(\log r - 1)` at masked sites, 0 elsewhere.

        With :math:`v = s / r` this is :math:`r\,(\sum_y v_y - 1 - \log v_{x_0})`, which does not cancel.
        """
        masked, expm1 = self._masked(x), torch.expm1(sigma).to(output.dtype)[:, None]
        # What the network says of unmasked sites is never learnt; it must not overflow on the way back either.
        shown = torch.where(masked[..., None], output, 0.0)
        sizes = self.sizes(x.device)
        total = self.form.number(shown).sum(-1) / (sizes if isinstance(sizes, int) else sizes.to(output.dtype))
        log_found = self.form.log(shown.gather(-1, x_0.long()[..., None])) - self._log_size(output)
        entropy: Tensor = masked * (total - 1 - log_found.squeeze(-1)) / expm1
        return entropy

    def analytic(self, log_score: Tensor, delta: Tensor, x: Tensor) -> Tensor:
        r"""Return :math:`P(y) = (e^\Delta - 1)\,s_y`; the mask stays with what is left."""
        return self._jump(log_score + torch.log(torch.expm1(delta)), x)

    def euler(self, log_score: Tensor, jump: Tensor, x: Tensor) -> Tensor:
        r"""Return :math:`P(y) = h\sigma'\,s_y`; the mask stays with what is left."""
        return self._jump(log_score + torch.log(jump), x)

    def denoised(self, log_score: Tensor, sigma: Tensor, x: Tensor) -> Tensor:
        """Return the analytic step without the mask: scores, normalised."""
        log_law = log_score.log_softmax(-1)
        return self._settle(torch.cat([log_law, torch.full_like(log_law[..., :1], -torch.inf)], -1), x)

    def noised(
        self, denoiser: Denoiser, x_0: Tensor, place: Tensor, first: Tensor, end: Tensor, *, generator: Generator
    ) -> Noised:
        r"""Mask each site with a probability m that is uniform, and one site that varies for certain.

        The noise is taken under the condition that all sites are masked at the end, where the reverse chain starts:
        :math:`m = (1 - e^{-\sigma})/(1 - e^{-\sigma_1})`, so that :math:`r\,d\sigma = dm/m`. A set of k in q sites is masked with
        probability :math:`\tfrac kq m^{k-1}(1-m)^{q-k}` instead of :math:`m^k (1-m)^{q-k}`, and weighs q/k instead of 1/m: the
        same mean, but no example without a masked site and no rare one of great weight.
        """
        lowest = torch.expm1(-first) / torch.expm1(-end)
        share = lowest + (1 - lowest) * place
        sigma = -torch.log1p(share * torch.expm1(-end))
        x = denoiser.corrupt(x_0, 1 - share, generator=generator)
        chosen = torch.rand(x.shape, generator=generator, device=x.device).masked_fill(~denoiser.varies, -1).argmax(-1)
        x = x.scatter(-1, chosen[:, None], self.noise.space.states)
        masked = (self._masked(x) & denoiser.varies).sum(-1).clamp(min=1)
        weight = (1 - lowest) * denoiser.varies.sum() / masked * torch.expm1(sigma)
        return Noised(sigma, x, weight)

    def start_divergence(self, end: Tensor) -> Tensor:
        """Return 0: the bridge ends in masks."""
        return torch.zeros_like(end)

    def _log_size(self, output: Tensor) -> Any:
        """Return log p: a number, or (sites, 1) where sites have alphabets of their own."""
        sizes = self.sizes(output.device)
        return math.log(sizes) if isinstance(sizes, int) else sizes.log().to(output.dtype)[:, None]

    def _masked(self, x: Tensor) -> Tensor:
        return x == self.noise.space.states

    def _jump(self, log_moved: Tensor, x: Tensor) -> Tensor:
        return self._settle(torch.cat([log_moved, _log_rest(log_moved)], -1).log_softmax(-1), x)

    def _settle(self, log_law: Tensor, x: Tensor) -> Tensor:
        here = torch.where(_is(x, self.noise.tokens), 0.0, -torch.inf).to(log_law.dtype)
        return torch.where(self._masked(x)[..., None], log_law, here)


class UniformScore(Score):
    r"""The score is a ratio of conditionals of the noised law, :math:`s_y = \mu_t(y \mid x_{-i}) / \mu_t(x_i \mid x_{-i})`."""

    def log_score(self, output: Tensor, sigma: Tensor, x: Tensor) -> Tensor:
        """Return log s, 0 at the present token."""
        return self.form.log(output.masked_fill(_is(x, self.noise.tokens), 0.0))

    def entropy(self, output: Tensor, sigma: Tensor, x: Tensor, x_0: Tensor) -> Tensor:
        r"""Return :math:`\tfrac1p \sum_{y \ne x} [s_y - r_y \log s_y + r_y(\log r_y - 1)]`.

        r is the ratio of the kernels from :math:`x_0` to y and to x. If :math:`x = x_0` it is
        :math:`(e^\sigma - 1)/(e^\sigma - 1 + p)`. Else it is :math:`1 + p/(e^\sigma - 1)` at :math:`y = x_0`, and 1 elsewhere.
        With :math:`d = \log s - \log r` each term is :math:`r\,(e^d - 1 - d)`, which does not cancel.
        """
        states, sizes = self.noise.space.states, self.sizes(x.device)
        log_high = torch.log1p(sizes / torch.expm1(sigma)[:, None]).to(output.dtype)[..., None]
        log_ratio = torch.where(_is(x_0, states), log_high, 0.0)
        log_ratio = torch.where((x == x_0)[..., None], -log_high, log_ratio)
        none = _is(x, states)  # nothing is said of the present token, nor of one that the site does not have
        if self.noise.space.sizes is not None:
            none = none | ~self.noise.space.allowed(x.device)
        gap = self.form.log(output.masked_fill(none, 0.0)) - log_ratio
        terms = log_ratio.exp() * (torch.expm1(gap) - gap)
        entropy: Tensor = terms.masked_fill(none, 0.0).sum(-1) / sizes
        return entropy.to(output.dtype)

    def analytic(self, log_score: Tensor, delta: Tensor, x: Tensor) -> Tensor:
        r"""Return the reversal of one site's kernel, :math:`P(y) \propto \mu_{t-h}(y \mid x_{-i})\,K_\Delta(x_i \mid y)`.

        The normalised scores are :math:`\mu_t(\cdot \mid x_{-i})`, and with noise Δ undone they are
        :math:`1/p + e^\Delta (\mu_t - 1/p)`: clamped where a score that is not exact makes it negative.
        """
        sizes = self.sizes(x.device)
        states = sizes if isinstance(sizes, int) else sizes[:, None]
        # A token that the site does not have has the score 0: this is not positive for it.
        earlier = (1 / states + torch.exp(delta) * (log_score.softmax(-1) - 1 / states)).clamp(min=0)
        here = _is(x, self.noise.space.states)
        kernel = torch.where(here, torch.exp(-delta), 0.0) - torch.expm1(-delta) / states
        return torch.log(earlier * kernel).log_softmax(-1)

    def euler(self, log_score: Tensor, jump: Tensor, x: Tensor) -> Tensor:
        r"""Return :math:`P(y) = h\sigma'\,s_y/p` for :math:`y \ne x`; the present token stays with what is left, if anything is."""
        here = _is(x, self.noise.tokens)
        sizes = self.sizes(x.device)
        rate = jump / (sizes if isinstance(sizes, int) else sizes[:, None])
        log_moved = (log_score + torch.log(rate)).masked_fill(here, -torch.inf)
        return torch.where(here, _log_rest(log_moved), log_moved).log_softmax(-1)

    def denoised(self, log_score: Tensor, sigma: Tensor, x: Tensor) -> Tensor:
        """Return the analytic step that undoes all of the noise."""
        return self.analytic(log_score, sigma, x)

    def noised(
        self, denoiser: Denoiser, x_0: Tensor, place: Tensor, first: Tensor, end: Tensor, *, generator: Generator
    ) -> Noised:
        r"""Draw the noise evenly in :math:`\sqrt m`, m = 1 − e^−σ, or, one time in ten, evenly in σ.

        With little noise a rare change weighs 1/σ, which a density like :math:`m^{-1/2}` balances. It alone would hardly
        ever look at large σ. Each draw weighs the inverse of the density of both ways together.
        """
        low, high = torch.sqrt(-torch.expm1(-first)), torch.sqrt(-torch.expm1(-end))
        even = place < EVEN_SHARE
        root = low + (high - low) * (place - EVEN_SHARE) / (1 - EVEN_SHARE)
        sigma = torch.where(even, first + (end - first) * place / EVEN_SHARE, -torch.log1p(-(root**2)))
        share = -torch.expm1(-sigma)
        density = EVEN_SHARE / (end - first) + (1 - EVEN_SHARE) * (1 - share) / (2 * torch.sqrt(share) * (high - low))
        return Noised(sigma, denoiser.corrupt(x_0, 1 - share, generator=generator), 1 / density)

    def start_divergence(self, end: Tensor) -> Tensor:
        r"""Return :math:`\mathrm{KL}(\alpha\delta_{x_0} + (1-\alpha)/p \,\|\, 1/p)` at :math:`\alpha = e^{-\sigma_1}`."""
        states, keep = self.sizes(end.device), torch.exp(-end)
        other = (states - 1) / states * (1 - keep)
        divergence: Tensor = (1 - other) * torch.log1p((states - 1) * keep) + other * torch.log1p(-keep)
        return divergence


def _is(x: Tensor, tokens: int) -> Tensor:
    """Which token is the present one, (n, sites, tokens) booleans; none where x is a mask beyond them."""
    return x.long()[..., None] == torch.arange(tokens, device=x.device)


def _log_rest(log_moved: Tensor) -> Tensor:
    """Log-probability that nothing happens, (..., 1): none where the moves alone add up to one or more."""
    return torch.log(-torch.expm1(log_moved.logsumexp(-1, keepdim=True).clamp(max=0)))
