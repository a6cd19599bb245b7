r"""The least change of a conditional that gives what is drawn from it the moments of the data.

A model has drawn the sites after u of n rows, and its logits of site u in row r are :math:`z_r`. Features :math:`f_r` of what it
has drawn, weighted by w, are added to them. The w that minimises

.. math:: \frac1n \sum_r \log \sum_a e^{z_{ra} + f_r \cdot w_a} - \sum_a T_a \cdot w_a + \frac\lambda2 \lVert w \rVert^2, \qquad
   T_a = \langle 1_{x_u = a}\, f \rangle_{\mathrm{data}}

has :math:`\langle \mu(x_u = a)\, f \rangle_{\mathrm{drawn}} = T_a - \lambda w_a`: the moments of the data, but for what λ keeps
back. With the rows of the data in the place of those drawn, this is the regression that maximises the likelihood: there a site
answers to sites as they are, here to sites as the model makes them. The problem is convex.
"""

from __future__ import annotations

import torch
from torch import Tensor

from neurise.deadline import Work

ITERATIONS = 6
SHORTER = (1.0, 0.5, 0.25, 0.1, 0.03)
"""How much of a Newton step is made: whichever of these leads lowest."""


def correction(
    logits: Tensor,
    features: Tensor,
    wanted: Tensor,
    *,
    shrink: float,
    weight: Tensor | None = None,
    iterations: int = ITERATIONS,
    work: Work | None = None,
) -> Tensor:
    r"""Return the weights w (k, O) for features (n, k) that give the wanted moments (k, O), starting from logits (n, O).

    Rows count the same, or as their ``weight`` (n,) says, which sums to 1. Where the time of the ``work`` ends, the weights are
    those of the steps that were made: each of them leads down.
    O is 1 for two states, whose logit is the log-odds of token 1, or the number of states. Newton's steps, in which the
    curvature :math:`\mathrm{diag}(\mu) - \mu\mu^\top` of the softmax is replaced by :math:`2\,\mathrm{diag}(\mu(1-\mu))`: it is
    nowhere less than the curvature, it is the same for two states, and it leaves the outcomes apart.
    """
    outcomes, weights = logits.shape[-1], torch.zeros_like(wanted)
    sizes = torch.tensor(SHORTER, device=logits.device, dtype=logits.dtype)
    ridge = shrink * torch.eye(len(wanted), device=logits.device, dtype=logits.dtype)
    share = logits.new_full((len(logits),), 1 / len(logits)) if weight is None else weight
    for _ in range(iterations):
        here = logits + features @ weights
        law = torch.sigmoid(here) if outcomes == 1 else torch.softmax(here, dim=-1)
        slope = wanted - features.T @ (share[:, None] * law) - shrink * weights  # (k, O), downhill
        bend = share[:, None] * law * (1 - law) * (1 if outcomes == 1 else 2)  # (n, O)
        curvature = torch.stack([features.T @ (features * part[:, None]) for part in bend.unbind(-1)]) + ridge
        step = torch.linalg.solve(curvature, slope.T[..., None]).squeeze(-1).T
        if outcomes > 1:  # what all states have in common changes nothing
            step = step - step.mean(1, keepdim=True)
        further = (features @ step)[None] * sizes[:, None, None]  # (sizes, n, O)
        height = _log_sum(here + further) @ share - sizes * (wanted * step).sum()
        height = height + shrink / 2 * (weights + sizes[:, None, None] * step).pow(2).sum((1, 2))
        weights = weights + sizes.index_select(0, height.argmin(0, keepdim=True)) * step
        if work is not None and not work.left():
            break
    return weights


def _log_sum(logits: Tensor) -> Tensor:
    """Logarithm of the sum over the states, (..., O) → (...)."""
    if logits.shape[-1] == 1:
        return torch.nn.functional.softplus(logits).squeeze(-1)
    return torch.logsumexp(logits, dim=-1)
