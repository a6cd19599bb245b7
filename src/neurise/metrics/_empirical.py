"""Samples beside a law, or beside other samples: what the metrics of laws share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from neurise import holdings
from neurise.laws import as_law
from neurise.metrics._rows import Tokens, tokens
from neurise.metrics._weights import Weights

ENUMERABLE = 2**40
"""Configurations from which on nobody can have a pmf."""


class Observed(NamedTuple):
    """The configurations that samples hold, and how often."""

    place: Tensor  # (cells,) int64, in the order of the law
    share: Tensor  # (cells,) float64, sums to 1
    size: float  # how many observations there are
    cell: Tensor  # (n,) int64, the cell of each row
    importances: Tensor | None  # (n,) float64, sum to 1; None where rows are counted


def is_pmf(given: Any) -> bool:
    """Whether something is a vector of probabilities rather than a matrix of rows."""
    if holdings.is_strings(given) or not (hasattr(given, "ndim") or isinstance(given, list | tuple)):
        return False  # bit strings, counts, a data set: rows
    try:
        return (given.ndim if hasattr(given, "ndim") else np.ndim(given)) == 1
    except ValueError:  # ragged: rows, and the door of the rows says what is wrong with them
        return False


def known_law(pmf: Any, metric: str) -> Tensor:
    """Check the pmf that a metric holds something against."""
    if not is_pmf(pmf):
        raise ValueError(
            f"{metric} needs the probabilities of all configurations, (p^q,), as its second argument; for rows against rows "
            "use total_variation, cross_correlation or mmd"
        )
    return as_law(pmf, len(pmf), "pmf")


def observe(samples: Any, law: Tensor, *, alphabet: Any, weights: Any = None, what: str = "samples") -> Observed:
    """Find rows in a law; a law of another space is refused."""
    known = tokens(alphabet, **{what: samples})
    space, x = known.space, known.sets[0]
    check_space(law, known, what)
    masses = Weights.of(weights, len(x), f"weights of {what}")
    place, cell = torch.unique(space.index(x), return_inverse=True)
    own = torch.from_numpy(masses.masses / masses.masses.sum()).to(cell.device)
    share = torch.bincount(cell, own, minlength=len(place))
    return Observed(place, share, masses.size, cell, None if masses.counted else own)


def check_space(law: Tensor, known: Tokens, what: str) -> None:
    """Refuse a law that is not over the space of the rows."""
    space = known.space
    if space.size == len(law):
        return
    needed, hint = f"{space.states}^{space.sites}", "if the rows lack a symbol, give all of them with alphabet="
    if space.size < ENUMERABLE:
        needed += f" = {space.size:,}"
    else:
        hint += (
            "; so many cannot be written out: hold the samples against rows of the law, with total_variation, mmd or "
            "cross_correlation"
        )
    raise ValueError(
        f"the pmf has {len(law):,} entries, and {what} of {space.sites} sites over the {space.states} symbols "
        f"{known.alphabet} need {needed}; {hint}"
    )


class LeftOut(NamedTuple):
    """What leaving out one observation at a time tells of a number: its variance over new draws, and its bias."""

    variance: float
    bias: float


def leave_one_out(share: Tensor, size: float, term: Callable[[Tensor], Tensor]) -> LeftOut | None:
    r"""Variance and bias of :math:`T = \sum_x \varphi_x(\hat\mu_x)` over new draws, by leaving out one sample at a time.

    Without one of its observations in cell x, T moves by a constant and
    :math:`d_x = \varphi_x(\tfrac{K_x-1}{n-1}) - \varphi_x(\tfrac{K_x}{n-1})`, so the jackknife needs no resampling:
    :math:`V = (n-1) \sum_x \hat\mu_x (d_x - \bar d)^2`. Its mean is never below the variance (Efron and Stein), also
    where φ has a kink, as in a total variation, or where cells hold one observation each. The bias is
    :math:`(n-1)(\bar T_{-1} - T)`, without error where φ is quadratic; at a kink it is of no use.
    """
    if size <= 1:
        return None
    kept = share * (size / (size - 1))
    before, constant = term(share), term(kept)
    change = term((kept - 1 / (size - 1)).clamp(min=0)) - constant
    mean = (share * change).sum()
    spread = (share * (change - mean) ** 2).sum()
    bias = (size - 1) * float((constant - before).sum() + mean)
    return LeftOut((size - 1) * float(spread), bias)


def variance_of_weighted(
    cell: Tensor, masses: Tensor, share: Tensor, term: Callable[[Tensor, Tensor], Tensor]
) -> float | None:
    r"""Variance of :math:`T = \sum_x \varphi_x(\hat\mu_x)` over new draws of rows that have importances.

    With the masses :math:`w_i`, which sum to 1, x the cell of row i, and
    :math:`D_i = \bigl(\varphi_x(\hat\mu_x) - \varphi_x(\hat\mu_x - w_i)\bigr) / w_i`, it is

    .. math:: \frac{1}{1 - \sum_i w_i^2} \sum_i w_i^2 (D_i - \bar D)^2, \qquad \bar D = \sum_i w_i D_i.

    Rows of large weight may lie in some cells more than in others: their effective number alone says too little.
    """
    alike = float(masses.square().sum())
    present = masses > 0
    cell, masses = cell[present], masses[present]
    if len(masses) < 2:
        return None
    own = share[cell]
    slope = (term(own, cell) - term((own - masses).clamp(min=0), cell)) / masses
    spread = (masses.square() * (slope - (masses * slope).sum()) ** 2).sum()
    return float(spread) / (1 - alike)
