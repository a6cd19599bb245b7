"""Pairwise terms of every site with the few others that tell most about it, for data of many columns."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from neurise.deadline import Work
from neurise.energies.pairwise_regression import Terms, expanded
from neurise.energies.parents import Parents, of_rows
from neurise.energies.regressions import Fit
from neurise.rows import Rows, split

MOST = 48
"""Parents that a site may have; fewer are enough for all data that were looked at."""
HELD = 0.1
"""Share of the rows that are held back where nobody has held any back."""


@torch.no_grad()
def fit(
    rows: Rows,
    held: Rows | None,
    states: int,
    sees: Tensor,
    *,
    parts: Sequence[Tensor | None] = (None,),
    seed: int,
    device: torch.device,
    work: Work | None = None,
) -> list[Terms]:
    """Fit the terms of all sites with parents among those that they see, (sites, sites), for each of the parts of the rows.

    A part is given as booleans (n,), None for all rows. It is judged by the rows that were held back, or else by those that are
    not in it, or by a tenth of them all.
    """
    found, work = list[Terms](), work or Work()
    for number, part in enumerate(parts):
        own, aside = rows if part is None else rows.take(part), held
        if aside is None and part is not None:
            aside = rows.take(~part)
        elif aside is None:
            own, aside = split(own, HELD, generator=torch.Generator().manual_seed(seed))
        share = work.part(1 / (len(parts) - number))
        chosen = of_rows(own, aside, states, sees.to(device), most=MOST, work=share)
        found.append(expanded(dense(chosen), sees.shape[0], states))
        work.left(done=1)
    return found


def dense(found: Parents) -> Fit:
    """Write the regressions on parents as those on all sites."""
    sites, _, inner, _ = found.weight.shape
    weight = found.weight.new_zeros(sites, sites + 1, inner, inner)  # the last place is for parents that are not there
    place = torch.where(found.sites >= 0, found.sites, sites)[..., None, None].expand_as(found.weight)
    weight.scatter_(1, place, found.weight)
    lines = weight[:, :-1].permute(0, 3, 1, 2)  # (sites, outcomes, sites, features)
    return Fit(lines.reshape(sites * inner, sites * inner), found.bias[:, 0].flatten())
