"""Total variation distance."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from neurise import devices
from neurise.estimate import Estimate
from neurise.laws import as_law, distance
from neurise.metrics._binomial import expected_distance
from neurise.metrics._empirical import Observed, is_pmf, leave_one_out, observe, variance_of_weighted
from neurise.metrics._rows import tokens
from neurise.metrics._weights import Weights
from neurise.space import row_ids


def total_variation(
    samples_or_pmf: Any,
    reference: Any,
    *,
    other: Any = None,
    reference_weights: Any = None,
    alphabet: Any = None,
    seed: int = 0,
) -> Estimate:
    r"""Total variation distance :math:`\tfrac12 \sum_x |\hat\mu(x) - \mu(x)| \in [0, 1]`, without units.

    Each argument is a law, (p^q,), or rows, (n, sites), which stand for their empirical law. ``alphabet`` gives the symbols
    in the order of the pmf's digits; without it, the sorted symbols of the rows, all of which must then occur. Rows
    against rows work on any space: only what occurs is counted. ``reference_weights`` are counts or importances of the
    reference's rows.

    **Floor.** Rows score above zero even if they come from the very law: n rows against a pmf by
    :math:`\tfrac12 \sum_x E|K_x/n - \mu_x|`, which is given exactly. Rows against rows need ``other``, a second set of real
    rows: the floor is its score against the reference. Of the larger of ``samples`` and ``other`` a part as large as the
    smaller is taken, chosen by ``seed``, for the floor depends on the size. Without ``other`` there is no floor: resampled
    rows would never hold what was not seen. Law against law has none: it is exact.

    **Error.** The spread over new draws of the rows, by leaving out one row at a time in closed form. Far from the floor
    it is :math:`\sqrt{\mathrm{Var}\,s/4n}`, s = ±1 the sign of :math:`\hat\mu - \mu`. At the floor it is too wide, by up
    to :math:`(1 - 2/\pi)^{-1/2} = 1.66`. Importances enter row by row. A bootstrap would
    score resampled rows too high instead. Samples are biased upwards by up to the floor, which the error does not hold.

    >>> import neurise
    >>> neurise.metrics.total_variation([0.5, 0.5, 0.0, 0.0], [0.25, 0.25, 0.25, 0.25])
    0.5 ± 0 (floor 0)
    """
    first_law, second_law = is_pmf(samples_or_pmf), is_pmf(reference)
    if second_law and reference_weights is not None:
        raise ValueError("reference_weights belong to rows, and the reference is a pmf")
    if not first_law and not second_law:
        return _between_rows(samples_or_pmf, reference, other, reference_weights, alphabet, seed)
    law = as_law(reference, len(reference), "pmf") if second_law else as_law(samples_or_pmf, len(samples_or_pmf), "pmf")
    if first_law and second_law:
        value = distance(as_law(samples_or_pmf, len(law), "the first law").to(law.device), law)
        return Estimate(value, error=0.0, floor=0.0)
    if first_law:
        seen = observe(reference, law, alphabet=alphabet, weights=reference_weights, what="reference")
    else:
        seen = observe(samples_or_pmf, law, alphabet=alphabet)
    return _against_law(seen, law)


def _against_law(seen: Observed, law: Tensor) -> Estimate:
    """Compare rows with a law, which stays on its own device: it may be large."""
    mu = law[seen.place.to(law.device)].to(seen.place.device)
    # Cells that were not seen add their own probability, so that only those that were have to be looked at.
    value = 0.5 * float(law.sum() + ((seen.share - mu).abs() - mu).sum())

    def term(share: Tensor, cell: Tensor | slice = slice(None)) -> Tensor:
        return 0.5 * (share - mu[cell]).abs()

    variance = _variance(seen.share, seen.size, seen.cell, seen.importances, term)
    floor = expected_distance(law, max(1, round(seen.size)))
    return Estimate(max(0.0, value), error=_root(variance), floor=floor)


def _between_rows(
    samples: Any, reference: Any, other: Any, reference_weights: Any, alphabet: Any, seed: int
) -> Estimate:
    rows = {"samples": samples, "reference": reference} | ({} if other is None else {"other": other})
    known = tokens(alphabet, **rows)
    weights = Weights.of(reference_weights, len(known.sets[1]), "reference_weights")
    mine, theirs, *more = row_ids(*known.sets, states=known.space.states)
    if more:
        source, size = devices.generator(seed, torch.device("cpu")), min(len(mine), len(more[0]))
        mine, *more = (
            part[torch.randperm(len(part), generator=source)[:size].to(part.device)] for part in (mine, *more)
        )
    cells = 1 + max(int(part.max()) for part in (mine, theirs, *more))
    masses = torch.from_numpy(weights.masses / weights.masses.sum()).to(theirs.device)
    truth = torch.bincount(theirs, masses, minlength=cells)
    first, *rest = (torch.bincount(part, minlength=cells).to(torch.float64) / len(part) for part in (mine, *more))
    ours = leave_one_out(first, len(mine), lambda share: 0.5 * (share - truth).abs())

    def term(share: Tensor, cell: Tensor | slice = slice(None)) -> Tensor:
        return 0.5 * (share - first[cell]).abs()

    its = _variance(truth, weights.size, theirs, None if weights.counted else masses, term)
    variance = None if ours is None or its is None else ours.variance + its
    return Estimate(distance(first, truth), error=_root(variance), floor=distance(rest[0], truth) if rest else None)


def _variance(
    share: Tensor, size: float, cell: Tensor, importances: Tensor | None, term: Callable[..., Tensor]
) -> float | None:
    """Return the variance over new draws of rows that are counted, or that have importances."""
    if importances is not None:
        return variance_of_weighted(cell, importances, share, term)
    left = leave_one_out(share, size, term)
    return None if left is None else left.variance


def _root(variance: float | None) -> float | None:
    return None if variance is None else math.sqrt(variance)
