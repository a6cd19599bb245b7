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
ROUNDING = 64
"""Last bits of its trace by which a curvature may be wrong: sums over many rows, of features that depend on each other."""


def correction(
    logits: Tensor,
    features: Tensor,
    wanted: Tensor,
    *,
    shrink: float | Tensor,
    weight: Tensor | None = None,
    iterations: int = ITERATIONS,
    work: Work | None = None,
) -> Tensor:
    r"""Return the weights w (..., k, O) for features (..., n, k) that give the wanted moments (k, O), or (..., k, O).

    They are added to logits (..., n, O). Problems of the same size, each with a λ of its own, ``shrink`` (...), are solved side
    by side. Rows count the same, or as their ``weight`` (n,) says, which sums to 1. Where the time of the ``work`` ends, the
    weights are those of the steps that were made: each of them leads down.
    O is 1 for two states, whose logit is the log-odds of token 1, or the number of states. Newton's steps, in which the
    curvature :math:`\mathrm{diag}(\mu) - \mu\mu^\top` of the softmax is replaced by :math:`2\,\mathrm{diag}(\mu(1-\mu))`: it is
    nowhere less than the curvature, it is the same for two states, and it leaves the outcomes apart.
    """
    rows, outcomes, problems = logits.shape[-2], logits.shape[-1], logits.shape[:-2]
    weights = wanted.new_zeros(*problems, *wanted.shape[-2:])
    sizes = torch.tensor(SHORTER, device=logits.device, dtype=logits.dtype).view(-1, *(1 for _ in problems))
    own = torch.as_tensor(shrink, device=logits.device, dtype=logits.dtype).expand(problems)
    each, ridge = own[..., None, None], own[..., None, None, None] * torch.eye(wanted.shape[-2], device=logits.device)
    share = logits.new_full((rows,), 1 / rows) if weight is None else weight
    for _ in range(iterations):
        here = logits + features @ weights
        law = torch.sigmoid(here) if outcomes == 1 else torch.softmax(here, dim=-1)
        slope = wanted - features.mT @ (share[:, None] * law) - each * weights  # (..., k, O), downhill
        bend = share[:, None] * law * (1 - law) * (1 if outcomes == 1 else 2)  # (..., n, O)
        curvature = torch.stack([features.mT @ (features * part[..., None]) for part in bend.unbind(-1)], -3) + ridge
        # A little more curvature shortens the step and leaves the minimum where it is; without it, rounding may turn the step.
        trace = curvature.diagonal(dim1=-2, dim2=-1).sum(-1)
        curvature.diagonal(dim1=-2, dim2=-1).add_(ROUNDING * torch.finfo(trace.dtype).eps * trace[..., None])
        # Unchecked, since a check would wait for the device. Without any curvature, no step is made.
        step = torch.linalg.solve_ex(curvature, slope.mT[..., None])[0].squeeze(-1).mT
        step = torch.where(step.isfinite().all(-2, keepdim=True).all(-1, keepdim=True), step, 0.0)
        if outcomes > 1:  # what all states have in common changes nothing
            step = step - step.mean(-1, keepdim=True)
        longer = sizes[..., None, None]
        height = _log_sum(here + longer * (features @ step)) @ share - sizes * (wanted * step).sum((-2, -1))
        height = height + own / 2 * (weights + longer * step).pow(2).sum((-2, -1))
        lowest = torch.where(height.isfinite(), height, torch.inf).argmin(0)
        best = sizes.flatten().index_select(0, lowest.flatten()).view(problems)
        weights = weights + best[..., None, None] * step
        if work is not None and not work.left():
            break
    return weights


def _log_sum(logits: Tensor) -> Tensor:
    """Logarithm of the sum over the states, (..., O) → (...)."""
    if logits.shape[-1] == 1:
        return torch.nn.functional.softplus(logits).squeeze(-1)
    return torch.logsumexp(logits, dim=-1)
