r"""Losses for single-site conditionals, all of one signature: ``loss(logits, x_u, allowed=None) -> one value per example``.

``logits`` is :math:`f(t, u, x_{-u})`, (..., states); ``x_u`` the token that was observed, (...). Every loss here is
minimised, on average over :math:`x_u \sim \mu_t(\cdot \mid x_{-u})`, where :math:`\mathrm{softmax}(f) = \mu_t(\cdot \mid x_{-u})`.

``allowed`` (..., states) says which states a site has, where columns have alphabets of their own. The loss is then that of the
allowed logits alone: p is their number, means and sums run over them, and the others have no gradient.

>>> import torch
>>> from neurise import losses
>>> losses.screening(torch.zeros(2, 3), torch.tensor([0, 2])).tolist()
[1.0, 1.0]
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import torch
from torch import Tensor

Loss = Callable[..., Tensor]
"""``loss(logits, x_u, allowed=None)``."""

STEEPEST = 1e4
"""No logit gets a larger gradient from :class:`TemperedScreening`."""


def screening(logits: Tensor, x_u: Tensor, allowed: Tensor | None = None) -> Tensor:
    r"""Interaction-screening loss of NeurISE, :math:`\exp(-\langle \Phi(x_u), f \rangle)`.

    :math:`\Phi` centres over the alphabet, so that :math:`\langle \Phi(a), f \rangle = f_a - \bar f`. At the minimum its
    value is :math:`p\,(\prod_a \mu_a)^{1/p}`.

    >>> import torch
    >>> from neurise import losses
    >>> logits, x_u = torch.tensor([[0.0, 1.0, 2.0]]), torch.tensor([2])
    >>> round(float(losses.screening(logits, x_u)), 3)               # exp(−(2 − 1))
    0.368
    """
    energy = logits - _mean(logits, allowed)[..., None]
    return torch.exp(-_pick(energy, x_u))


@dataclass(frozen=True)
class WeightedScreening:
    r"""Screening times the stop-gradient weight :math:`w^\alpha`, where :math:`w = p\,(\prod_a p_a)^{1/p}`.

    w is the screening loss that the model expects, :math:`p_a = \mathrm{softmax}(f)_a`; for two states it is
    :math:`2\sqrt{p_+ p_-}`. A weight that depends on the context alone does not move the minimum. α = 0 is screening; for
    two states α = 1 has exactly the gradient of :func:`cross_entropy`.

    >>> import torch
    >>> from neurise import losses
    >>> logits, x_u = torch.tensor([[0.0, 1.0, 2.0]]), torch.tensor([2])
    >>> round(float(losses.weighted_screening(1.0)(logits, x_u)), 3)
    0.27
    """

    alpha: float

    def __post_init__(self) -> None:
        _check_power("alpha", self.alpha)

    def __call__(self, logits: Tensor, x_u: Tensor, allowed: Tensor | None = None) -> Tensor:
        """Return the loss of each example."""
        mean = _mean(logits, allowed)
        states = math.log(logits.shape[-1]) if allowed is None else allowed.sum(-1).to(logits.dtype).log()
        log_weight = states + mean - torch.logsumexp(_only(logits, allowed), dim=-1)
        # One exponential of the sum: the weight is tiny exactly where screening is huge.
        return torch.exp(self.alpha * log_weight.detach() - (_pick(logits, x_u) - mean))


@dataclass(frozen=True)
class TemperedScreening:
    r"""Path from screening (γ = 0) to cross-entropy (γ = 1), for any number of states.

    Screening centres the logits by the uniform law and cross-entropy by the model's own conditional
    :math:`p_a = \mathrm{softmax}(f)_a`. Between them stands the tempered :math:`r = \mathrm{softmax}(\gamma f)`:

    .. math::
        \frac{\partial \ell}{\partial f_a} = W\,\frac{r_x}{p_x}\,(r_a - \delta_{ax}), \qquad
        W = \frac{\bigl(\tfrac{p-1}{p}\,w\bigr)^{1-\gamma} \bigl(1 - \sum_a p_a^2\bigr)^{\gamma}}{1 - \sum_a r_a^2}, \qquad
        w = p\,\bigl(\textstyle\prod_a p_a\bigr)^{1/p} .

    Its mean vanishes at the true conditional whatever r and W are, as long as they depend on the model's conditional alone:
    only the ratio :math:`r_x / p_x` is forced. There its mean derivative is :math:`W(\mathrm{diag}\,r - r r^\top) \ge 0`. W is
    such that the trace of it goes geometrically from that of screening to that of cross-entropy. For two states this is
    :class:`WeightedScreening` of α = γ. The steepest of all tokens, not the one observed, bounds W, so that nothing overflows
    and the minimum stays where it is. The value is that of :math:`W r_x/p_x`; it is for descent, not for comparing models.

    >>> import torch
    >>> from neurise import losses
    >>> logits, x_u = torch.tensor([[0.0, 1.0, 2.0]]), torch.tensor([2])
    >>> round(float(losses.tempered_screening(0.75)(logits, x_u)), 3)
    0.779
    """

    gamma: float

    def __post_init__(self) -> None:
        _check_power("gamma", self.gamma)

    def __call__(self, logits: Tensor, x_u: Tensor, allowed: Tensor | None = None) -> Tensor:
        """Return the loss of each example."""
        if allowed is not None:
            return self._of_some(logits, x_u, allowed)
        gamma, fixed, states = self.gamma, logits.detach(), logits.shape[-1]
        if states == 1:  # nothing to choose from, and no spread to divide by
            return screening(logits, x_u)
        if states == 2:  # a third of the operations: on a GPU they take longer than the network does
            return _tempered_pair(logits, x_u, gamma)
        log_p, log_r = torch.log_softmax(fixed, dim=-1), torch.log_softmax(gamma * fixed, dim=-1)
        log_w = math.log(states - 1) + log_p.mean(dim=-1)
        log_weight = (1 - gamma) * log_w + gamma * _log_spread(log_p) - _log_spread(log_r)
        slopes = log_weight[..., None] + log_r - log_p
        steepest = slopes.amax(dim=-1)
        log_slope = _pick(slopes, x_u) - steepest + steepest.clamp(max=math.log(STEEPEST))
        centred = _pick(logits, x_u) - (log_r.exp() * logits).sum(dim=-1)
        return torch.exp(log_slope + (centred.detach() - centred))

    def _of_some(self, logits: Tensor, x_u: Tensor, allowed: Tensor) -> Tensor:
        """Return the loss of the allowed logits; of one that is alone it is 1, as that of screening is."""
        gamma, fixed, count = self.gamma, logits.detach(), allowed.sum(-1)
        log_p, log_r = (torch.log_softmax(_only(power * fixed, allowed), dim=-1) for power in (1.0, gamma))
        log_w = torch.log((count - 1).clamp(min=1).to(log_p.dtype)) + _mean(log_p, allowed)
        log_weight = (1 - gamma) * log_w + gamma * _log_spread(log_p) - _log_spread(log_r)
        slopes = torch.where(allowed, log_weight[..., None] + log_r - log_p, -torch.inf)
        steepest = slopes.amax(dim=-1)
        log_slope = _pick(slopes, x_u) - steepest + steepest.clamp(max=math.log(STEEPEST))
        centred = _pick(logits, x_u) - torch.where(allowed, log_r.exp() * logits, 0.0).sum(dim=-1)
        return torch.exp(torch.where(count > 1, log_slope, 0.0) + (centred.detach() - centred))


weighted_screening, tempered_screening = WeightedScreening, TemperedScreening
"""Losses with a parameter are called by it, as in ``tempered_screening(0.75)``. They are objects, so that models can be pickled."""


def _tempered_pair(logits: Tensor, x_u: Tensor, gamma: float) -> Tensor:
    r"""For two states, :math:`w^\gamma e^{-d}` with :math:`d = (f_x - f_{\bar x})/2` and :math:`w = 1/\cosh d`, bounded alike."""
    gap = 0.5 * (_pick(logits, x_u) - _pick(logits, 1 - x_u.long()))
    size = gap.detach().abs()
    log_weight = gamma * (math.log(2) - size - torch.log1p(torch.exp(-2 * size)))
    # The steepest slope is half of the greater value.
    return torch.exp(log_weight - (log_weight + size - math.log(2 * STEEPEST)).clamp(min=0) - gap)


def cross_entropy(logits: Tensor, x_u: Tensor, allowed: Tensor | None = None) -> Tensor:
    r"""Negative log-likelihood of the conditional (pseudo-likelihood), :math:`-\log \mathrm{softmax}(f)_{x_u}`, in nats.

    >>> import torch
    >>> from neurise import losses
    >>> logits, x_u = torch.tensor([[0.0, 1.0, 2.0]]), torch.tensor([2])
    >>> round(float(losses.cross_entropy(logits, x_u)), 3)
    0.408
    """
    return -_pick(torch.log_softmax(_only(logits, allowed), dim=-1), x_u)


@lru_cache
def resolve(name: str) -> Loss:
    """Turn a loss's name into the loss.

    ``weighted_screening(0.75)`` carries its α, which is 1 where none is given; ``tempered_screening(0.75)`` its γ, which is 0.75
    where none is given.

    >>> import neurise
    >>> neurise.losses.resolve('tempered_screening(0.75)').gamma
    0.75
    """
    plain: dict[str, Loss] = {"screening": screening, "cross_entropy": cross_entropy}
    if name in plain:
        return plain[name]
    families: dict[str, tuple[Callable[[float], Loss], float]] = {
        "weighted_screening": (WeightedScreening, 1.0),
        "tempered_screening": (TemperedScreening, 0.75),
    }
    member = re.fullmatch(rf"({'|'.join(families)})(?:\(([-+.\deE]+)\))?", str(name))
    if member:
        family, usual = families[member[1]]
        try:
            return family(float(member[2] or usual))
        except ValueError as error:
            raise ValueError(f"loss={name!r}: {error}") from error
    known = "screening, weighted_screening(alpha), tempered_screening(gamma), cross_entropy"
    raise ValueError(f"unknown loss {name!r}; there are: {known}")


def _check_power(name: str, value: float) -> None:
    """Refuse powers so far from those of screening (0) and cross-entropy (1) that no descent would end."""
    if not -1 <= value <= 2:  # a NaN fails this too
        raise ValueError(f"{name} must be from -1 to 2 (0 is screening, 1 is near cross-entropy), got {value}")


def _log_spread(log_p: Tensor) -> Tensor:
    r"""Logarithm of :math:`1 - \sum_a p_a^2 = 2\rho - \rho^2 - \sum' p_a^2`, ρ and the last sum over all but the likeliest state.

    The left side would round to zero where one state is all but certain.
    """
    others = log_p.scatter(-1, log_p.argmax(dim=-1, keepdim=True), -math.inf)
    log_rho = torch.logsumexp(others, dim=-1)
    share = torch.exp(torch.logsumexp(2 * others, dim=-1) - log_rho)
    return log_rho + torch.log(2 - log_rho.exp() - share)


def _mean(logits: Tensor, allowed: Tensor | None) -> Tensor:
    """Mean over the states that a site has, (...)."""
    if allowed is None:
        return logits.mean(dim=-1)
    return torch.where(allowed, logits, 0.0).sum(dim=-1) / allowed.sum(dim=-1)


def _only(logits: Tensor, allowed: Tensor | None) -> Tensor:
    """Logits of the states that a site has, −∞ for the others."""
    return logits if allowed is None else logits.masked_fill(~allowed, -math.inf)


def _pick(values: Tensor, x_u: Tensor) -> Tensor:
    return values.gather(-1, x_u.long()[..., None]).squeeze(-1)
