r"""Moments of the laws of a family by Markov chains that go on where they stood, and whether these chains mix.

Chains start at rows of the data. A sweep redraws all sites, those of one colour of the graph at once. Rows x that belong to
:math:`\theta_0` stand for a law nearby with the importance weights

.. math:: w(x) \propto e^{(\theta - \theta_0) \cdot f(x)}, \qquad
   \log \frac{Z(\theta)}{Z(\theta_0)} = \log \Bigl\langle e^{(\theta - \theta_0) \cdot f} \Bigr\rangle_{\theta_0},

as long as the share of rows that are effectively left, :math:`(\sum w)^2 / n \sum w^2`, is not small. Chains do not know of each
other, so that errors follow from one snapshot of them, however slowly each of them moves.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Generator, Tensor

from neurise.deadline import Work
from neurise.energies.family import Family, by_class
from neurise.energies.maximum_likelihood import Aim
from neurise.mcmc import sweep

LEAST, MOST = 1000, 4000
"""Chains at least, and at most on a CPU; between, as many as rows."""
PER_PARAMETER = 4
"""Chains for each parameter, where that is more: they tell the curvature."""
MOST_NUMBERS, MOST_NUMBERS_ON_GPU = 2**22, 2**26
"""Logits of all chains at most."""
BLOCK = 2**15
"""Logits that a CPU computes at a time, so that they stay in its cache."""
REMEMBERED = 0.3
"""Correlation of a site with itself that chains which mix are below at the end of the check."""
DRIFT = 0.1
"""Standard deviations that means of chains which mix may differ by, beyond their errors."""
CERTAIN = 3.0
"""Standard errors beyond those that the largest of many independent numbers has."""


@dataclass(frozen=True)
class Moved:
    """What a snapshot says about a law nearby."""

    moments: Tensor  # (size,): means over the classes
    log_z: float  # the change of log Z, mean over the classes
    effective: float  # share of the rows that is left, in the worst class


@dataclass(frozen=True)
class Snapshot:
    """Where the chains of each class stand, and the law that they belong to."""

    family: Family
    shares: Tensor  # (kinds,)
    samples: list[Tensor]  # (chains, sites) tokens of each class, on the CPU
    theta: Tensor

    def moved(self, theta: Tensor) -> Moved:
        """Give the rows importance weights."""
        moments, log_z, effective = torch.zeros_like(theta), 0.0, 1.0
        for kind, (x, share) in enumerate(zip(self.samples, self.shares.tolist(), strict=True)):
            change = self.family.interactions(theta - self.theta, kind).log_weight(x)
            weight = change.softmax(0)
            moments += self.family.sums(x, share * weight, kind)
            log_z += share * (float(change.logsumexp(0)) - math.log(len(x)))
            effective = min(effective, 1 / float(len(x) * weight.square().sum()))
        return Moved(moments, log_z, effective)

    def energies(self) -> Tensor:
        """Return the energy of every chain at its own law, beside the mean of its class, (chains,)."""
        found = [self.family.interactions(self.theta, kind).log_weight(x) for kind, x in enumerate(self.samples)]
        return torch.cat([one - one.mean() for one in found])


class Chains:
    """Chains of each class, on a device."""

    def __init__(self, family: Family, shares: Tensor, starts: list[Tensor], generator: Generator) -> None:
        self.family, self.shares, self.generator = family, shares, generator
        largest = max(map(len, family.interactions(torch.zeros(family.size).double()).groups))
        width = max(1, BLOCK // (largest * family.space.states))
        width = width if generator.device.type == "cpu" else max(map(len, starts))
        self.blocks = [[part.T.contiguous().to(generator.device) for part in torch.split(x, width)] for x in starts]

    @classmethod
    def at_rows(cls, family: Family, aim: Aim, *, device: torch.device | None = None, seed: int = 0) -> Chains:
        """Start at rows of the data, drawn by their weights."""
        generator = generator_on(device, seed)
        rng, starts = torch.Generator().manual_seed(seed), list[Tensor]()
        numbers = numbers_of(family, aim, generator.device)
        for (_, x, weight), number in zip(by_class(aim.rows, family.kinds), numbers, strict=True):
            if not float(weight.sum()):  # a class without rows
                starts.append(family.space.uniform(number, generator=rng))
                continue
            level = (torch.arange(number) + torch.rand(1, generator=rng, dtype=torch.float64)) / number * weight.sum()
            starts.append(x[torch.searchsorted(weight.cumsum(0), level).clamp(max=len(x) - 1)])
        return cls(family, aim.shares, starts, generator)

    def elsewhere(self, seed: int) -> Chains:
        """Start half as many chains anywhere."""
        rng = torch.Generator().manual_seed(seed)
        numbers = [max(2, sum(part.shape[1] for part in x) // 2) for x in self.blocks]
        starts = [self.family.space.uniform(number, generator=rng) for number in numbers]
        return Chains(self.family, self.shares, starts, self.generator)

    @property
    def number(self) -> int:
        """How many chains there are."""
        return sum(part.shape[1] for x in self.blocks for part in x)

    def run(self, theta: Tensor, sweeps: int, work: Work) -> Snapshot:
        """Sweep all chains with the laws of theta."""
        for kind, blocks in enumerate(self.blocks):
            law = self.family.interactions(theta, kind)
            for cells in blocks:
                for _ in range(sweeps if work.left() else 0):
                    sweep(law, cells.T, generator=self.generator)
        samples = [torch.cat([cells.T.cpu() for cells in blocks]) for blocks in self.blocks]
        return Snapshot(self.family, self.shares, samples, theta)


def generator_on(device: torch.device | None, seed: int) -> Generator:
    """Make a generator on a device, or on the CPU where that has no float64."""
    own = device is not None and device.type != "mps"
    return torch.Generator(device if own else torch.device("cpu")).manual_seed(seed)


def numbers_of(family: Family, aim: Aim, device: torch.device) -> list[int]:
    """Return how many chains each class has: by its share of the rows, and at least a few."""
    cpu = device.type == "cpu"
    memory = (MOST_NUMBERS if cpu else MOST_NUMBERS_ON_GPU) // (family.space.sites * family.space.states)
    total = min(
        max(LEAST, int(aim.count), PER_PARAMETER * family.size), max(LEAST, memory if not cpu else min(MOST, memory))
    )
    return [max(LEAST // (2 * family.kinds), round(total * share)) for share in aim.shares.tolist()]


def problems(chains: Chains, theta: Tensor, *, sweeps: int, seed: int, work: Work) -> list[str]:
    """Say in words why chains do not mix within so many sweeps at fixed parameters; nothing where they do.

    They must forget where they were, not drift, and meet chains that were started anywhere.
    """
    before = chains.run(theta, 0, work)
    half = chains.run(theta, sweeps // 2, work)
    after = chains.run(theta, sweeps - sweeps // 2, work)
    other = chains.elsewhere(seed).run(theta, sweeps, work)
    found = []
    memory, noise = _memory(before, after), 1 / math.sqrt(chains.number)
    if float(memory.max()) > REMEMBERED + CERTAIN * noise:
        found.append(
            f"after {sweeps} sweeps site {int(memory.argmax())} still has a correlation of {float(memory.max()):.2f} with itself"
        )
    law = chains.family.interactions
    change = torch.cat(
        [
            law(theta, kind).log_weight(late) - law(theta, kind).log_weight(early)
            for kind, (early, late) in enumerate(zip(half.samples, after.samples, strict=True))
        ]
    )
    spread = float(after.energies().std())
    if abs(float(change.mean())) > DRIFT * spread + CERTAIN * float(change.std()) * noise:
        found.append(f"their energies drift by {float(change.mean()):.2f} nats in {sweeps - sweeps // 2} sweeps")
    gap = _distance(after, other)
    if gap > 0:
        found.append(
            f"chains from the rows and chains from anywhere differ by {gap + DRIFT:.2f} standard deviations in a mean"
        )
    return found


def _memory(before: Snapshot, after: Snapshot) -> Tensor:
    """Return the correlation of each site with itself, (sites,): of contrasts within their class."""
    family = before.family
    both, one, two = (torch.zeros(family.space.sites, dtype=torch.float64) for _ in range(3))
    for early, late in zip(before.samples, after.samples, strict=True):
        first, second = (shown - shown.mean(0) for shown in (family.shown(early), family.shown(late)))
        for total, product in ((both, first * second), (one, first * first), (two, second * second)):
            total.index_add_(0, family.columns[:, 0], product.sum(0))
    return both / (one * two).sqrt().clamp(min=1e-12)


def _distance(one: Snapshot, two: Snapshot) -> float:
    """Return by how many standard deviations the means of energies, columns and couplings differ beyond errors and DRIFT."""
    worst = -math.inf
    for kind, samples in enumerate(zip(one.samples, two.samples, strict=True)):
        law = one.family.interactions(one.theta, kind)
        means, squares = list[Tensor](), list[Tensor]()
        for x in samples:
            seen = one.family.shown(x)
            first, second, _ = one.family.pairs.unbind(1)
            energy, square = law.log_weight(x), seen.square()
            share = seen.new_full((len(x),), 1 / len(x))
            couplings = ((seen.T @ seen)[first, second] / len(x), (square.T @ square)[first, second] / len(x))
            means.append(torch.cat([energy.mean()[None], share @ seen, couplings[0]]))
            squares.append(torch.cat([energy.square().mean()[None], share @ square, couplings[1]]))
        variance = sum(square - mean.square() for mean, square in zip(means, squares, strict=True)) / 2
        deviations = (means[0] - means[1]).abs() / torch.as_tensor(variance).clamp(min=1e-12).sqrt()
        largest = math.sqrt(2 * math.log(2 * len(deviations))) + CERTAIN
        error = largest * math.sqrt(sum(1 / len(x) for x in samples))
        worst = max(worst, float(deviations.max()) - error - DRIFT)
    return worst
