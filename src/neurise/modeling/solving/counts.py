"""Count contexts: conditionals that follow the rows themselves where these are many for the space."""

from __future__ import annotations

from torch import Tensor

from neurise.conditionals import counts as counted
from neurise.conditionals.base import Frame
from neurise.deadline import Work
from neurise.modeling.solving.base import Solved
from neurise.rows import Rows


def counts(
    rows: Rows, held: Rows | None, frame: Frame, *, seed: int, work: Work, near: Tensor | None = None
) -> Solved | None:
    """Count the contexts of every site; rows held back have no say, since rows are left out one by one.

    A graph (``near``) changes nothing: given the sites after it, a site depends on more than its neighbours.
    """
    found = counted.Counts.of_rows(rows, frame, work=work)
    if not work.left():
        return None
    words = f"{len(found.asks):,} contexts of up to {found.depth} sites"

    def again(other: Rows, time: Work) -> Solved | None:
        return counts(other, None, frame, seed=seed, work=time)

    return Solved(found, found.free, words, again)
