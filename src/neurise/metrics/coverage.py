"""Which of the modes of the truth the samples visit."""

from __future__ import annotations

import math
import numbers
from typing import Any, NamedTuple

import torch
from torch import Tensor

from neurise.estimate import Estimate
from neurise.laws import as_law
from neurise.metrics._empirical import check_space, is_pmf, leave_one_out
from neurise.metrics._rows import tokens
from neurise.space import row_ids

TIE = 1e-9
"""Probabilities this close, relatively, are equal: symmetric configurations differ by rounding."""


class Covered(NamedTuple):
    """The share of the modes that was visited."""

    modes: Estimate  # by their number
    mass: Estimate  # by their probability


def coverage(
    samples: Any,
    reference: Any,
    *,
    mass: float = 0.9,
    modes: Any = None,
    other: Any = None,
    alphabet: Any = None,
) -> Covered:
    r"""Share of the modes that n samples visit: :math:`\sum_{x \in M} w_x 1\{K_x > 0\}`, without units.

    ``w`` is 1/\|M\| (``.modes``) or :math:`\mu_x / \mu(M)` (``.mass``). The modes M are the fewest, most likely
    configurations that carry the probability ``mass``; or the ``modes`` most likely ones, if that is a number; with equals
    of the last. Or ``modes`` names them, as rows. ``reference`` is the pmf, (p^q,), or real rows, whose shares then stand
    for μ; a row that occurs once is no mode of theirs unless it is named.

    **Floor.** n rows of the law itself visit :math:`\sum_x w_x (1 - (1-\mu_x)^n)` on average: exact for a pmf, and by the
    reference's own shares for rows, a little too high because what was seen often was also lucky. With ``other``, a second
    set of real rows, the floor is what n of them visit, averaged over all choices of n. Where ``other`` has only m < n rows,
    both scores are those of m rows: the mean over all choices of m among the samples.

    **Error.** The spread over new draws of the samples for the same modes, by leaving out one at a time in closed form.

    >>> import neurise
    >>> law = [0.5, 0.3, 0.15, 0.05]                        # of two sites: 00, 01, 10, 11
    >>> float(neurise.metrics.coverage([[0, 0], [0, 1]], law, mass=0.8).modes)
    1.0
    """
    if not 0 < mass <= 1:
        raise ValueError(f"mass is the probability that the modes carry, in (0, 1]; got {mass!r}")
    named = modes is not None and not isinstance(modes, numbers.Integral)
    rows = {"samples": samples} | ({"modes": modes} if named else {})
    if is_pmf(reference):
        law = as_law(reference, len(reference), "pmf")
        known = tokens(alphabet, **rows)
        check_space(law, known, "samples")
        law = law.to(known.sets[0].device)
        mine, *rest = (known.space.index(x) for x in known.sets)
        chosen = torch.unique(rest[0]) if named else _likeliest(law, mass, modes)
        return _score(law[chosen], _counts(mine, chosen), len(mine))
    rows |= {"reference": reference} | ({} if other is None else {"other": other})
    known = tokens(alphabet, **rows)
    ids = dict(zip(rows, row_ids(*known.sets, states=known.space.states), strict=True))
    real = ids["reference"]
    chosen = torch.unique(ids["modes"]) if named else _frequent(real, mass, modes)
    second = None if other is None else (_counts(ids["other"], chosen), len(ids["other"]))
    return _score(_counts(real, chosen) / len(real), _counts(ids["samples"], chosen), len(ids["samples"]), second)


def _likeliest(law: Tensor, mass: float, number: int | None) -> Tensor:
    """Find the modes of a law; a large law is not sorted further than needed."""
    _check_number(number)
    size = min(len(law), 2**16 if number is None else number)
    top = torch.topk(law, size).values
    while number is None and size < len(law) and float(top.sum()) < mass:
        size = min(len(law), 4 * size)
        top = torch.topk(law, size).values
    last = size - 1 if number is not None else int((top.cumsum(0) < mass - TIE).sum().clamp(max=size - 1))
    return torch.nonzero((law >= top[last] * (1 - TIE)) & (law > 0))[:, 0]


def _frequent(ids: Tensor, mass: float, number: int | None) -> Tensor:
    kinds, counts = torch.unique(ids, return_counts=True)
    kinds, counts = kinds[counts > 1], counts[counts > 1]
    if len(kinds) == 0:
        raise ValueError(
            f"no row of the reference occurs twice among {len(ids):,}, so none is a mode; name modes=, or use "
            "nearest_neighbour or mmd, which need no repeated rows"
        )
    chosen: Tensor = kinds[_likeliest(counts / len(ids), mass, number)]
    return chosen


def _check_number(number: int | None) -> None:
    if number is not None and (isinstance(number, bool) or number < 1):
        raise ValueError(f"modes is how many configurations to look for, or the rows themselves; got {number!r}")


def _counts(ids: Tensor, chosen: Tensor) -> Tensor:
    """How often each of some ascending numbers occurs, float64."""
    place = torch.searchsorted(chosen, ids).clamp(max=len(chosen) - 1)
    return torch.bincount(place[chosen[place] == ids], minlength=len(chosen)).to(torch.float64)


def _score(mu: Tensor, counts: Tensor, n: int, second: tuple[Tensor, int] | None = None) -> Covered:
    if float(mu.sum()) == 0:
        raise ValueError("none of the modes has any probability in the reference")
    size = n if second is None else min(n, second[1])
    real = -torch.expm1(n * torch.log1p(-mu.clamp(max=1))) if second is None else _visited(*second, size)
    scores = [
        _estimate(weights, counts, n, size, real) for weights in (torch.full_like(mu, 1 / len(mu)), mu / mu.sum())
    ]
    return Covered(*scores)


def _estimate(weights: Tensor, counts: Tensor, n: int, size: int, real: Tensor) -> Estimate:
    rest = counts.new_tensor([n - float(counts.sum())])  # samples that lie on no mode
    share, worth = torch.cat([counts, rest]) / n, torch.cat([weights, rest * 0])

    def term(share: Tensor) -> Tensor:
        return worth * _visited(torch.round(share * (n - 1)), n - 1, min(size, n - 1))

    left = leave_one_out(share, n, term)
    variance = None if left is None else left.variance
    value = float((weights * _visited(counts, n, size)).sum())
    return Estimate(value, error=None if variance is None else math.sqrt(variance), floor=float((weights * real).sum()))


def _visited(counts: Tensor, n: int, size: int) -> Tensor:
    r"""Chance that ``size`` of n rows, without replacement, hold one of K: :math:`1 - \binom{n-K}{s} / \binom{n}{s}`."""
    left = n - counts  # rows that are not it
    whole = torch.lgamma(counts.new_tensor([n + 1.0, n - size + 1.0]))
    log_missed = torch.lgamma(left + 1) - torch.lgamma((left - size).clamp(min=0) + 1) - whole[0] + whole[1]
    return torch.where(left < size, 1.0, -torch.expm1(log_missed.clamp(max=0)))
