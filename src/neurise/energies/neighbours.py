r"""The pairwise part of conditionals whose neighbours are known: a small regression for every site, solved to the end.

Where a graph says which sites depend on each other, nothing need be found out about the others, and a site has so few terms that
Newton's method solves for them. The penalty :math:`\tfrac\lambda2 \lVert A \rVert^2` with :math:`\lambda = c/n` is that of terms
that are a priori normal with variance 1/c, so the more rows there are, the less it says.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from neurise.deadline import Work
from neurise.energies import moments
from neurise.energies.pairwise_regression import Terms, expanded
from neurise.energies.regressions import Fit, Sample, sample_of
from neurise.rows import Rows

PRIOR = 0.01
"""c: a priori terms are about ten units large, as they are between sites that almost always agree."""
ITERATIONS = 25
"""Newton steps; where a site is almost certain of its neighbours, the first ones add about one unit each."""


@torch.no_grad()
def fit(
    rows: Rows,
    states: int,
    near: Tensor,
    *,
    parts: Sequence[Tensor | None] = (None,),
    device: torch.device,
    work: Work | None = None,
) -> list[Terms]:
    """Fit the terms of every site with its neighbours, (sites, sites) booleans, for each of the parts of the rows (None: all).

    Sites that the time does not reach have no terms.
    """
    work = work or Work()
    sample, neighbours = sample_of(rows, states, device), near.cpu()
    chosen = [sample if part is None else sample.part(part[sample.place].to(sample.weight)) for part in parts]
    found = list[Terms]()
    for number, one in enumerate(chosen):
        own = _fitted(one, neighbours, work.part(1 / (len(chosen) - number)))
        found.append(expanded(own, near.shape[0], states))
    return found


def _fitted(sample: Sample, near: Tensor, work: Work) -> Fit:
    sites, inner = len(near), sample.outcomes
    weight = sample.features.new_zeros(sites * inner, sites * inner)
    bias = sample.features.new_zeros(sites * inner)
    ones = sample.features.new_ones(len(sample.features), 1)
    weights = sample.weight.double() / sample.weight.double().sum()
    shrink = PRIOR / float(sample.count.sum())
    for u in range(sites):
        if not work.left():
            break
        columns = (torch.nonzero(near[u]) * inner + torch.arange(inner)).flatten().to(weight.device)
        # In float64: where neighbours always agree, the penalty is all the curvature there is.
        features = torch.cat([ones, sample.features[:, columns]], dim=1).double()
        wanted = features.T @ (weights[:, None] * sample.target[:, u])
        start = features.new_zeros(len(features), inner)
        found = moments.correction(
            start, features, wanted, shrink=shrink, weight=weights, iterations=ITERATIONS, work=work
        )
        lines = slice(u * inner, (u + 1) * inner)
        bias[lines], weight[lines, columns] = found[0].to(bias), found[1:].T.to(weight)
    return Fit(weight, bias)
