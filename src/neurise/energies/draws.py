"""Rows of a law that was learnt, drawn independently where its sums are done, else by the chains that learnt it."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from neurise.deadline import Work
from neurise.energies.chains import Chains, generator_on
from neurise.energies.learning import Learnt, Sampled
from neurise.rows import Rows

SPACING = 10
"""Sweeps between two rows of one chain."""


def draws(
    found: Learnt | Sampled, n: int, *, seed: int, work: Work | None = None, device: torch.device | None = None
) -> Rows:
    """Draw about n rows; together those of a class weigh its share, and all of them 1.

    Chains go on where they stand, and are looked at again and again until there are enough rows. Where the time ends, there are
    fewer.
    """
    if isinstance(found, Learnt):
        numbers = [max(1, round(n * share)) for share in found.shares.tolist()]
        parts = [found.draw(number, kind, seed=seed + kind) for kind, number in enumerate(numbers)]
        return _joined(parts, found.shares)
    work, fit = work or Work(), found.found
    chains = Chains(fit.family, fit.shares, fit.samples, generator_on(device, seed))
    seen: list[list[Tensor]] = [[] for _ in fit.samples]
    for number in range(math.ceil(n / chains.number)):
        if number and not work.left():
            break
        for kind, x in enumerate(chains.run(fit.theta, SPACING, work).samples):
            seen[kind].append(x)
    return _joined([torch.cat(own) for own in seen], fit.shares)


def _joined(parts: list[Tensor], shares: Tensor) -> Rows:
    """Put the rows of all classes together."""
    weights = torch.cat(
        [
            x.new_full((len(x),), 1.0, dtype=torch.float64) * share / len(x)
            for x, share in zip(parts, shares, strict=True)
        ]
    )
    y = torch.cat([torch.full((len(x),), kind) for kind, x in enumerate(parts)]) if len(parts) > 1 else None
    return Rows(torch.cat(parts).to(torch.uint8), y, weights)
