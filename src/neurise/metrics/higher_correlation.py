"""Error of the correlations of three sites and more."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor

from neurise import devices
from neurise.estimate import Estimate
from neurise.metrics._blocks import compare
from neurise.metrics._groups import draw_groups, sums_over
from neurise.metrics._rows import tokens
from neurise.metrics._weights import Weights


class HigherError(NamedTuple):
    """How far the correlations of groups of sites are apart."""

    mean_abs: Estimate  # mean |ΔC| over groups
    rms: Estimate  # root mean square of ΔC over groups


def higher_correlation(
    samples: Any,
    reference: Any,
    *,
    order: int = 3,
    groups: int = 10_000,
    other: Any = None,
    reference_weights: Any = None,
    alphabet: Any = None,
    seed: int = 0,
) -> HigherError:
    r"""Distance between the correlations of groups of ``order`` sites in two sets of rows, without units.

    For two symbols :math:`C_g = \langle \prod_{i \in g} \sigma_i \rangle` of spins ±1; for more,
    :math:`C_g = \langle 1\{x_i = x_j \ \forall i, j \in g\} \rangle`, the probability that all agree, which is the pair
    correlation of :func:`cross_correlation` carried on. Like that one it is a mean over rows, thus unbiased, and blind to
    what exchanges the symbols; the distance of whole marginals would see more, but through a floor of its own in each of
    the :math:`p^3` cells. The score is the mean :math:`|\Delta C_g|` and the root mean square over ``groups`` distinct
    groups that ``seed`` chooses, or over all where there are no more.

    **Floor** and **error** as for :func:`cross_correlation`: the score of ``other`` real rows, or of halves of the
    reference, rescaled to the sizes at hand; and the spread over new draws of both sets for the same groups.

    >>> import neurise
    >>> data = neurise.datasets.edwards_anderson(side=2, seed=0)
    >>> first, second = data.sample(500, seed=0), data.sample(500, seed=1)
    >>> found = neurise.metrics.higher_correlation(first, second)
    >>> neurise.metrics.higher_correlation(first, first).mean_abs == 0
    True
    """
    rows = {"samples": samples, "reference": reference} | ({} if other is None else {"other": other})
    known = tokens(alphabet, **rows)
    sites, states = known.space.sites, known.space.states
    if isinstance(order, bool) or order != int(order) or not 3 <= order <= sites:
        raise ValueError(
            f"order must be a whole number from 3 to the number of sites, {sites}; got {order!r} (for pairs use cross_correlation)"
        )
    if isinstance(groups, bool) or groups != int(groups) or groups < 1:
        raise ValueError(f"groups must be a positive whole number, got {groups!r}")
    source = devices.generator(seed, torch.device("cpu"))
    chosen = draw_groups(sites, int(order), int(groups), generator=source).to(known.sets[0].device)

    def measure(x: Tensor, masses: Tensor | None) -> Tensor:
        return sums_over(x, chosen, states, masses)

    def scores(difference: Tensor) -> Tensor:
        return torch.stack([difference.abs().mean(), (difference**2).mean().sqrt()])

    weights = Weights.of(reference_weights, len(known.sets[1]), "reference_weights")
    return HigherError(*compare(known.sets, measure, len(chosen), scores, weights, seed=seed))
