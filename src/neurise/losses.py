r"""Losses for single-site conditionals, all of one signature: ``loss(logits, x_u) -> one value an example``.

``logits`` is :math:`f(t, u, x_{-u})`, (..., states); ``x_u`` the token that was observed, (...). Every loss here is
minimised, on average over :math:`x_u \sim \mu_t(\cdot \mid x_{-u})`, where :math:`\mathrm{softmax}(f) = \mu_t(\cdot \mid x_{-u})`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable

import torch
from torch import Tensor

Loss = Callable[[Tensor, Tensor], Tensor]


def screening(logits: Tensor, x_u: Tensor) -> Tensor:
    r"""Interaction-screening loss of NeurISE, :math:`\exp(-\langle \Phi(x_u), f \rangle)`.

    :math:`\Phi` centres over the alphabet, so that :math:`\langle \Phi(a), f \rangle = f_a - \bar f`. At the minimum its
    value is :math:`p\,(\prod_a \mu_a)^{1/p}`.
    """
    energy = logits - logits.mean(dim=-1, keepdim=True)
    return torch.exp(-_pick(energy, x_u))


def weighted_screening(alpha: float) -> Loss:
    r"""Screening times the stop-gradient weight :math:`w^\alpha`, where :math:`w = p\,(\prod_a p_a)^{1/p}`.

    w is the screening loss that the model expects, :math:`p_a = \mathrm{softmax}(f)_a`; for two states it is
    :math:`2\sqrt{p_+ p_-}`. A weight that depends on the context alone does not move the minimum. α = 0 is screening; for
    two states α = 1 has exactly the gradient of :func:`cross_entropy`.
    """
    if not math.isfinite(alpha):
        raise ValueError(f"alpha must be finite, got {alpha}")

    def loss(logits: Tensor, x_u: Tensor) -> Tensor:
        mean = logits.mean(dim=-1)
        log_weight = math.log(logits.shape[-1]) + mean - torch.logsumexp(logits, dim=-1)
        # One exponential of the sum: the weight is tiny exactly where screening is huge.
        return torch.exp(alpha * log_weight.detach() - (_pick(logits, x_u) - mean))

    return loss


def cross_entropy(logits: Tensor, x_u: Tensor) -> Tensor:
    r"""Negative log-likelihood of the conditional (pseudo-likelihood), :math:`-\log \mathrm{softmax}(f)_{x_u}`, in nats."""
    return -_pick(torch.log_softmax(logits, dim=-1), x_u)


def resolve(name: str) -> Loss:
    """Turn a loss's name into the loss; ``weighted_screening(0.75)`` carries its α, which is 1 where none is given."""
    plain: dict[str, Loss] = {"screening": screening, "cross_entropy": cross_entropy}
    if name in plain:
        return plain[name]
    weighted = re.fullmatch(r"weighted_screening(?:\(([-+.\deE]+)\))?", str(name))
    if weighted:
        try:
            return weighted_screening(float(weighted[1] or 1))
        except ValueError as error:
            raise ValueError(f"loss={name!r}: {error}") from error
    raise ValueError(f"unknown loss {name!r}; there are: screening, weighted_screening(alpha), cross_entropy")


def _pick(values: Tensor, x_u: Tensor) -> Tensor:
    return values.gather(-1, x_u.long()[..., None]).squeeze(-1)
