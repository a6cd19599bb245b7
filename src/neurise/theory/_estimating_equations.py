r"""Roots of estimating equations: where the mean gradient of a loss over a law, or over many samples at once, vanishes."""

from __future__ import annotations

import torch
from torch import Tensor

from neurise.losses import Loss
from neurise.theory._conditional_families import ConditionalFamily

STEP = 1e-5
"""Of central differences; their error is that of its square, and Newton's method only needs the direction."""


def token_gradients(loss: Loss, logits: Tensor) -> Tensor:
    r"""Gradients :math:`\psi_x(f) = \partial\ell(f, x)/\partial f` for every token x, (..., tokens, states)."""
    states = logits.shape[-1]
    tokens = torch.arange(states, device=logits.device)
    with torch.enable_grad():
        copies = logits.detach()[..., None, :].expand(*logits.shape[:-1], states, states).contiguous().requires_grad_()
        (gradient,) = torch.autograd.grad(loss(copies, tokens.expand(copies.shape[:-1])).sum(), copies)
    return gradient


def mean_gradient(family: ConditionalFamily, theta: Tensor, counts: Tensor, loss: Loss) -> Tensor:
    """Gradient of the loss over the rows that the counts (..., contexts, states) sum up, (..., parameters)."""
    pull = torch.einsum("...cx,...cxa->...ca", counts, token_gradients(loss, family.logits(theta)))
    return torch.einsum("...ca,cad->...d", pull, family.design)


def jacobian(family: ConditionalFamily, theta: Tensor, counts: Tensor, loss: Loss) -> Tensor:
    """Derivative of the mean gradient, through the weights of the loss too, (..., parameters, parameters).

    Autograd cannot give it: what a loss stops the gradient at moves with the parameters all the same.
    """
    logits = family.logits(theta)
    curvature = []
    for shift in STEP * torch.eye(logits.shape[-1], dtype=logits.dtype):
        change = token_gradients(loss, logits + shift) - token_gradients(loss, logits - shift)
        curvature.append(torch.einsum("...cx,...cxa->...ca", counts, change) / (2 * STEP))
    local = torch.stack(curvature, dim=-1)  # (..., contexts, states, states)
    return torch.einsum("cad,...cab,cbe->...de", family.design, local, family.design)


def solve(
    family: ConditionalFamily,
    law: Tensor,
    loss: Loss,
    start: Tensor | None = None,
    *,
    tolerance: float = 1e-9,
    most: int = 200,
) -> tuple[Tensor, Tensor]:
    r"""Find θ with :math:`\mathbb{E}_{x \sim \text{law}}\,\partial_\theta \ell = 0` for each of many laws, (..., p^q), at once.

    Newton's method; a step is halved until the gradient gets shorter, and where it never does the Jacobian is damped.
    Returns the parameters, (..., parameters), and which of them were found, (...). ``start`` is zero where not given.
    """
    counts = family.counts(law.double())
    shape = (*law.shape[:-1], family.parameters)
    theta = torch.zeros(shape, dtype=torch.float64) if start is None else start.expand(shape).clone()
    damping = torch.zeros(shape[:-1], dtype=torch.float64)
    gradient = mean_gradient(family, theta, counts, loss)
    length = gradient.norm(dim=-1)
    unit = torch.eye(family.parameters, dtype=torch.float64)
    for _ in range(most):
        if bool((length <= tolerance).all()):
            break
        slope = jacobian(family, theta, counts, loss) + (damping + 1e-14)[..., None, None] * unit
        move = torch.linalg.lstsq(slope, gradient[..., None]).solution.squeeze(-1)
        scale = torch.ones_like(length)
        for _ in range(6):
            trial = theta - scale[..., None] * move
            trial_gradient = mean_gradient(family, trial, counts, loss)
            worse = ~(trial_gradient.norm(dim=-1) < length)
            if not bool(worse.any()):
                break
            scale = torch.where(worse, scale / 4, scale)
        accept = (~worse)[..., None]
        theta, gradient = torch.where(accept, trial, theta), torch.where(accept, trial_gradient, gradient)
        damping = torch.where(worse, 10 * damping.clamp(min=1e-6), damping / 10)
        length = gradient.norm(dim=-1)
    return theta, length <= tolerance
