"""Means of many quantities over blocks of rows: one pass gives their values, error bars and floors."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from neurise import devices
from neurise.batching import MEMORY_BUDGET
from neurise.estimate import Estimate
from neurise.metrics._rows import some
from neurise.metrics._weights import Weights

BLOCKS = 20
"""SampleBlocks of a set of rows. An error bar of so many is itself known to 1/√(2·19), about 16 %."""
SPLITS = 16
"""Pairs of halves that a floor is averaged over."""

Measure = Callable[[Tensor, Tensor | None], Tensor]
"""Sums of P quantities over rows, (n, sites) tokens and (n,) masses or None for ones, as a (P,) tensor."""
Statistic = Callable[[Tensor], Tensor]
"""The scores of P differences, (P,) to (scores,)."""


class SampleBlocks(NamedTuple):
    """Means over all rows, and over each block."""

    mean: Tensor  # (P,) float64
    means: Tensor  # (blocks, P) float32
    masses: Tensor  # (blocks,) float64
    size: float  # how many observations there are

    def without(self, block: int) -> Tensor:
        """Mean over the rows outside one block."""
        total, mass = self.masses.sum(), self.masses[block]
        return (total * self.mean - mass * self.means[block]) / (total - mass)

    def contrast(self, chosen: Tensor) -> Tensor:
        """Mean over some blocks, given by truth values, minus that over the others."""
        first, second = self.masses * chosen, self.masses * ~chosen
        weights = first / first.sum() - second / second.sum()
        return weights.to(self.means.dtype) @ self.means


def compare(
    sets: Sequence[Tensor], measure: Measure, quantities: int, statistic: Statistic, weights: Weights, *, seed: int
) -> list[Estimate]:
    """Score the samples against the weighted reference, and a third set, where there is one, for the floor."""
    first = blocks(sets[0], measure, quantities, seed=seed)
    second = blocks(sets[1], measure, quantities, seed=seed, weights=weights)
    values: list[float] = statistic(first.mean - second.mean).tolist()
    unknown: list[float | None] = [None] * len(values)
    spread = errors(first, second, statistic) or unknown
    if len(sets) > 2:
        # As many rows, rather than all and rescaled: two real sets may differ by more than chance (other writers, another
        # day of the machine), and that part does not fall with the size.
        third = blocks(some(sets[2], len(sets[0]), seed), measure, quantities, seed=seed)
        scale = rescale(first.size, second.size, third.size, second.size)
        floor: Sequence[float | None] = [scale * value for value in statistic(third.mean - second.mean).tolist()]
    else:
        floor = split_floor(second, first.size, statistic, seed=seed) or unknown
    return [Estimate(v, error=e, floor=f) for v, e, f in zip(values, spread, floor, strict=True)]


def blocks(x: Tensor, measure: Measure, quantities: int, *, seed: int, weights: Weights | None = None) -> SampleBlocks:
    """Measure rows of tokens, (n, sites), block by block, in an order that the seed shuffles.

    Rows with counts are repeated, so that equal observations may come to lie in different blocks.
    """
    rows, masses = torch.arange(len(x)), None
    if weights is not None and weights.counted:
        rows = rows.repeat_interleave(torch.from_numpy(weights.masses.astype(np.int64)))
    elif weights is not None:
        rows = rows[torch.from_numpy(weights.masses > 0)]
        masses = torch.from_numpy(weights.masses).to(x.device)
    # On the CPU, so that a seed means the same blocks on every device.
    rows = rows[torch.randperm(len(rows), generator=devices.generator(seed, torch.device("cpu")))].to(x.device)
    number = min(BLOCKS, len(rows), max(4, MEMORY_BUDGET // (4 * quantities)))
    total = torch.zeros(quantities, dtype=torch.float64, device=x.device)
    means = torch.empty((number, quantities), dtype=torch.float32, device=x.device)
    mass = torch.empty(number, dtype=torch.float64, device=x.device)
    for block, chosen in enumerate(rows.tensor_split(number)):
        sums = measure(x[chosen], None if masses is None else masses[chosen])
        mass[block] = len(chosen) if masses is None else masses[chosen].sum()
        means[block] = sums / mass[block]
        total += sums
    return SampleBlocks(total / mass.sum(), means, mass, float(len(rows)) if weights is None else weights.size)


def errors(first: SampleBlocks, second: SampleBlocks, statistic: Statistic) -> list[float] | None:
    r"""Standard errors of the scores of :math:`\Delta` = first − second over new draws of both, by leaving out blocks.

    The variances :math:`\tfrac{B-1}{B} \sum_b (T_{-b} - \bar T)^2` of the two sets add up.
    """
    if min(len(first.masses), len(second.masses)) < 2:
        return None
    ours = torch.stack([statistic(first.without(block) - second.mean) for block in range(len(first.masses))])
    its = torch.stack([statistic(first.mean - second.without(block)) for block in range(len(second.masses))])
    variance = sum((len(left) - 1) * left.var(dim=0, correction=0) for left in (ours, its))
    return [math.sqrt(value) for value in torch.as_tensor(variance).tolist()]


def split_floor(reference: SampleBlocks, size: float, statistic: Statistic, *, seed: int) -> list[float] | None:
    r"""Scores of two random halves of the reference, as they would be for ``size`` rows against all N.

    Differences of means of n and N rows have the variance :math:`\sigma^2(1/n + 1/N)`, those of halves
    :math:`4\sigma^2/N`; scores that are norms are rescaled by the root of the ratio.
    """
    number = len(reference.masses)
    if number < 2:
        return None
    source = devices.generator(seed, torch.device("cpu"))
    scores = []
    for _ in range(SPLITS):
        half = (torch.randperm(number, generator=source) < number // 2).to(reference.means.device)
        part = reference.size * float(reference.masses[half].sum() / reference.masses.sum())
        scale = rescale(size, reference.size, part, reference.size - part)
        scores.append(scale * statistic(reference.contrast(half)))
    floor: list[float] = torch.stack(scores).to(torch.float64).mean(dim=0).tolist()
    return floor


def rescale(n: float, reference: float, seen: float, seen_reference: float) -> float:
    r"""By how much a score of sizes (seen, seen_reference) changes for sizes (n, reference)."""
    return math.sqrt((1 / n + 1 / reference) / (1 / seen + 1 / seen_reference))
