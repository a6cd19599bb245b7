r"""How much error each loss makes of N rows, exactly, on spaces small enough to enumerate.

A loss is an estimating equation: its mean gradient :math:`\psi` over N rows is zero at the estimate. If the family of
conditionals holds the truth :math:`\theta`, the estimate is :math:`\mathcal N(\theta, \Sigma/N)` for many rows, with the sandwich

.. math:: \Sigma = H^{-1} V H^{-\top}, \qquad H = \mathbb{E}\,\partial_\theta \psi, \qquad V = \mathbb{E}\,\psi\psi^\top .

Every loss of :mod:`neurise.losses` can be asked, and any other of that signature.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor

from neurise.laws import as_law
from neurise.losses import Loss, cross_entropy
from neurise.theory._conditional_families import ConditionalFamily, autoregressive, pseudolikelihood, spin_glass
from neurise.theory._estimating_equations import solve, token_gradients

__all__ = [
    "Asymptotics",
    "ConditionalFamily",
    "ContextNoise",
    "Limit",
    "asymptotics",
    "autoregressive",
    "context_noise",
    "cramer_rao",
    "efficiency",
    "errors",
    "gain_of_whole_rows",
    "limit",
    "memorising",
    "path_signal",
    "pooled_efficiency",
    "pseudolikelihood",
    "pseudospherical",
    "solve",
    "spin_glass",
]


class Asymptotics(NamedTuple):
    r"""What an estimate from N rows costs when N is large: divide ``nll`` by N and ``tv`` by √N."""

    covariance: Tensor  # Σ, (parameters, parameters)
    nll: float  # ½ tr(I Σ), nats: excess of the expected negative log-likelihood, N · KL(μ ‖ estimate)
    tv: float  # mean of √N · TV(estimate, μ)


class ContextNoise(NamedTuple):
    """One conditional, at the truth: what its gradient tells, and how loud it is. Traces over the logits."""

    sensitivity: float  # tr H: how much the mean gradient answers to an error of the logits
    variance: float  # tr V: of the gradient of one example
    information: float  # tr of the Fisher information


class Limit(NamedTuple):
    """Where a loss ends with endless data when its family is too small for them."""

    theta: Tensor
    kl: float  # KL(data ‖ model), nats
    tv: float


def pseudospherical(gamma: float) -> Loss:
    r"""The proper score of order γ, :math:`\frac{1}{1-\gamma}\exp\bigl(-(1-\gamma)(f_x - A_\gamma)\bigr)`, without stop-gradients.

    :math:`A_\gamma = \frac1\gamma \log\frac1p\sum_a e^{\gamma f_a}` is a soft mean of the logits. At γ → 0 it is their mean, and
    the loss is screening; at γ → 1 the loss is cross-entropy up to constants. The gradient is
    :math:`e^{-(1-\gamma)(f_x - A_\gamma)}(r_a - \delta_{ax})`, :math:`r = \mathrm{softmax}(\gamma f)`, and the loss is convex in f.
    """
    if not 0 < gamma < 1:
        raise ValueError(f"gamma must lie between 0 and 1, got {gamma}; the ends are screening and cross_entropy")

    def loss(logits: Tensor, x_u: Tensor) -> Tensor:
        centre = (torch.logsumexp(gamma * logits, dim=-1) - math.log(logits.shape[-1])) / gamma
        energy = logits.gather(-1, x_u.long()[..., None]).squeeze(-1) - centre
        return torch.exp(-(1 - gamma) * energy) / (1 - gamma)

    return loss


def asymptotics(family: ConditionalFamily, theta: Tensor, loss: Loss) -> Asymptotics:
    r"""The sandwich of a loss at a truth θ of the family.

    The mean gradient of a consistent loss vanishes at every truth. Moving truth and model together therefore gives
    :math:`\mathbb{E}\,\partial_f \psi_x = \mathbb{E}\,\psi_x\, \psi_x'^\top` in every context, :math:`\psi'` the gradient of
    cross-entropy, and H needs no second derivative.
    """
    law = family.log_law(theta).exp()
    logits = family.logits(theta)
    own, score = token_gradients(loss, logits), token_gradients(cross_entropy, logits)
    counts = family.counts(law)
    local = torch.einsum("cx,cxa,cxb->cab", counts, own, score)
    sensitivity = torch.einsum("cad,cab,cbe->de", family.design, local, family.design)
    rows = _row_gradients(family, own)
    variance = torch.einsum("x,xd,xe->de", law, rows, rows)
    bread = torch.linalg.pinv(sensitivity, rtol=1e-13)
    return _cost(family, theta, bread @ variance @ bread.T)


def cramer_rao(family: ConditionalFamily, theta: Tensor) -> Asymptotics:
    r"""Full maximum likelihood, :math:`\Sigma = I^{-1}`: nothing does better, and ``nll`` is half the number of parameters."""
    return _cost(family, theta, torch.linalg.pinv(_information(family, theta), rtol=1e-13, hermitian=True))


def efficiency(family: ConditionalFamily, theta: Tensor, loss: Loss) -> float:
    """Share of the rows that maximum likelihood would have needed for the same expected likelihood; 1 is the best."""
    return cramer_rao(family, theta).nll / asymptotics(family, theta, loss).nll


def limit(family: ConditionalFamily, pmf: Tensor, loss: Loss, start: Tensor | None = None) -> Limit:
    """Minimise a loss over a whole law, which the family need not hold."""
    law = as_law(pmf, family.space.size, "pmf")
    if start is None:
        start, _ = solve(family, law, cross_entropy)
    theta, found = solve(family, law, loss, start)
    if not bool(found):
        raise ValueError(
            "the loss has no minimum that could be found on this law: give a law without zeros, or a start"
        )
    kl, tv = errors(family, theta, law)
    return Limit(theta, float(kl), float(tv))


def errors(family: ConditionalFamily, theta: Tensor, law: Tensor) -> tuple[Tensor, Tensor]:
    """KL(law ‖ model) in nats and total variation of models with parameters (..., parameters), (...) each."""
    log_model = family.log_law(theta)
    kl = (torch.special.xlogy(law, law) - law * log_model).sum(dim=-1)
    return kl, 0.5 * (log_model.exp() - law).abs().sum(dim=-1)


def context_noise(loss: Loss, conditional: Tensor) -> ContextNoise:
    r"""Noise of one context's gradient at the truth, :math:`\mu(\cdot \mid x_{-u})` = ``conditional``, (states,)."""
    logits = conditional.log()
    own, score = token_gradients(loss, logits), token_gradients(cross_entropy, logits)
    totals = [
        float((conditional[:, None] * one * two).sum()) for one, two in ((own, score), (own, own), (score, score))
    ]
    return ContextNoise(*totals)


def pooled_efficiency(loss: Loss, conditionals: Tensor, shares: Tensor) -> float:
    r"""Efficiency of a loss when many contexts pull at one shared number, :math:`(\mathbb{E} h)^2 / (\mathbb{E} v\; \mathbb{E} i)`.

    h, v and i are sensitivity, variance and information of :func:`context_noise`; ``conditionals`` is (contexts, states).
    The same ratio compares signal to noise of a stochastic gradient with that of cross-entropy.
    """
    found = [context_noise(loss, conditional) for conditional in conditionals]
    h, v, i = (float((shares * torch.tensor(column, dtype=torch.float64)).sum()) for column in zip(*found, strict=True))
    return h**2 / (v * i)


def path_signal(family: ConditionalFamily, truth: Tensor, theta: Tensor, loss: Loss) -> float:
    r"""Squared signal-to-noise of one row's gradient at θ, seen along the way to the truth.

    .. math:: (\mathbb{E}\,\psi \cdot d)^2 / \mathrm{Var}(\psi \cdot d), \qquad d = \theta - \text{truth}
    """
    law = family.log_law(truth).exp()
    rows = _row_gradients(family, token_gradients(loss, family.logits(theta))) @ (theta - truth)
    mean = (law * rows).sum()
    return float(mean**2 / (law * (rows - mean) ** 2).sum())


def gain_of_whole_rows(family: ConditionalFamily, truth: Tensor, theta: Tensor, loss: Loss) -> float:
    r"""Variance of a gradient from one random step of each row, over that from all steps of fewer rows, at equal cost.

    With T steps, one at random gives :math:`T \sum_t \mathbb{E}|\psi_t|^2 - |\mathbb{E}\psi|^2`; all of them give
    :math:`T\,\mathrm{Var}(\sum_t \psi_t)` for the same number of network evaluations.
    """
    law = family.log_law(truth).exp()
    steps = _step_gradients(family, token_gradients(loss, family.logits(theta)))  # (steps, p^q, parameters)
    total = steps.sum(dim=0)
    mean = (law @ total).square().sum()
    alone = len(steps) * (law * steps.square().sum(dim=-1)).sum() - mean
    together = len(steps) * ((law * total.square().sum(dim=-1)).sum() - mean)
    return float(alone / together)


def memorising(law: Tensor, rows: int) -> float:
    r"""Mean TV between a law and N rows of it when N is large, :math:`\tfrac12\sum_x\sqrt{2\mu(1-\mu)/(\pi N)}`."""
    return 0.5 * float((2 / math.pi * law * (1 - law) / rows).sqrt().sum())


def _row_gradients(family: ConditionalFamily, own: Tensor) -> Tensor:
    """Gradient of each configuration, all of its steps together, (p^q, parameters)."""
    return _step_gradients(family, own).sum(dim=0)


def _step_gradients(family: ConditionalFamily, own: Tensor) -> Tensor:
    """Gradient of each step of each configuration, (steps, p^q, parameters)."""
    steps = zip(family.context, family.token, strict=True)
    return torch.stack([torch.einsum("xa,xad->xd", own[c, token], family.design[c]) for c, token in steps])


def _information(family: ConditionalFamily, theta: Tensor) -> Tensor:
    score = family.score(theta)
    return torch.einsum("x,xd,xe->de", family.log_law(theta).exp(), score, score)


def _cost(family: ConditionalFamily, theta: Tensor, covariance: Tensor) -> Asymptotics:
    r"""Errors of a Gaussian estimate: :math:`\delta\log\mu(x) = \langle s(x), \delta\theta\rangle`, s the score of the law."""
    law, score = family.log_law(theta).exp(), family.score(theta)
    spread = torch.einsum("xd,de,xe->x", score, covariance, score).clamp(min=0)  # variance of δ log μ(x)
    nll = 0.5 * float(law @ spread)
    return Asymptotics(covariance, nll, 0.5 * float((law * (2 / math.pi * spread).sqrt()).sum()))
