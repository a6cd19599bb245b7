"""Parallel tempering: chains at several temperatures that swap places, so that none stays caught in a valley."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import torch
from torch import Generator, Tensor

from neurise import checks, devices
from neurise.mcmc.glauber import FlipConditionals, sweep
from neurise.mcmc.mixing import Diagnostics, autocorrelation_time, diagnose
from neurise.space import Space

GROUPS = 16
"""Independent ladders that are run side by side."""
MAX_UPDATES = 2**32
"""Site updates that a run may take when its length is not given: a minute or two on a laptop."""
WARM_UP = (64, 128, 256, 512)
"""Sweeps before each new spacing of the temperatures; the last stretch also says how far apart rows must be."""
BLOCK = 2**15
"""Logits that a CPU computes at a time: small arrays stay in its cache, and torch does not hand them to several threads,
which brings little and costs a hundredfold as soon as other programs want the cores too."""
MIN_ROWS = 64
"""Rows a group keeps at least: with fewer the groups cannot be compared."""
MIN_SWEEPS = 1024
"""Sweeps that a run takes at least when its length is not given: with fewer no chain travels."""


class Target(FlipConditionals, Protocol):
    """A law to be tempered: its log-weight is known too."""

    @property
    def sites(self) -> int:
        """How many sites there are."""

    @property
    def states(self) -> int:
        """How many states a site has."""

    @property
    def space(self) -> Space:
        """Return the space of the law."""

    def log_weight(self, x: Tensor) -> Tensor:
        r"""Log-probability up to a constant, (chains,) float64."""


@dataclass(frozen=True)
class Tempered:
    """Rows of the target law, group by group, their log-weights, and how well the chains mixed."""

    rows: Tensor  # (groups, rows of a group, sites) tokens
    log_weight: Tensor  # (groups, rows of a group)
    diagnostics: Diagnostics


def parallel_tempering(
    target: Target, rows: int, *, generator: Generator, groups: int = GROUPS, sweeps: int | None = None
) -> Tempered:
    r"""Draw at least ``rows`` rows from the target by parallel tempering in independent groups.

    A group is a ladder of chains with the laws :math:`\mu^{\beta_k}`, :math:`0 = \beta_0 < \dots < \beta_K = 1`. After each
    sweep neighbours swap with probability

    .. math:: \min\bigl(1,\; e^{(\beta_k - \beta_{k+1})(H(x_{k+1}) - H(x_k))}\bigr),

    even pairs and odd pairs by turns, so that a chain travels in one direction instead of diffusing. The hottest chain
    is redrawn from scratch with every sweep, so that each journey from it to the coldest is a fresh start. During a
    warm-up that is thrown away the temperatures are spaced so that all pairs swap equally often. ``sweeps`` is the number
    of sweeps that rows are then taken from; without it they are as many as make the rows nearly independent, within
    :data:`MAX_UPDATES` site updates. The chains run where the generator is; what is returned is on the CPU.
    """
    if rows < 1 or groups < 2 or (sweeps is not None and sweeps < 1):
        raise ValueError(f"rows and sweeps must be positive and groups at least 2, got {rows}, {sweeps}, {groups}")
    if sweeps is not None:
        checks.count("sweeps", sweeps, checks.MOST_STEPS)
    kept = max(MIN_ROWS, math.ceil(rows / groups))
    # A row is one byte per site, and what is known of every sweep of a group is two numbers; a group sweeps once per row.
    needed = rows * target.sites + 16 * groups * max(kept, sweeps or 0)
    devices.require_memory(needed, torch.device("cpu"), f"ask for fewer than {rows:,} rows, or fewer sweeps or groups")
    checks.count("the rows of each group", kept, checks.MOST_STEPS)
    ladder = _Ladder(target, groups, generator)
    for length in WARM_UP[:-1]:
        ladder.run(length, every=length)
        ladder.respace()
    pilot = ladder.run(WARM_UP[-1], every=1)
    ladder.respace()
    apart = math.ceil(3 * max(autocorrelation_time(pilot.log_weight), autocorrelation_time(pilot.overlap)))
    affordable = MAX_UPDATES // (target.sites * len(ladder.betas) * groups)
    length = max(kept, sweeps or min(max(kept * apart, MIN_SWEEPS), affordable))
    settle = length // 4  # the temperatures are final now, and what follows is in proportion to what is kept
    ladder.run(settle, every=settle)
    ladder.place(ladder.betas)
    every = length // kept
    run = ladder.run(every * kept, every=every)
    diagnostics = diagnose(
        run.log_weight,
        run.overlap,
        run.rows,
        every=every,
        discarded=sum(WARM_UP) + settle,
        betas=ladder.betas.cpu(),
        acceptance=ladder.acceptance.cpu(),
        round_trips=int(ladder.trips),
    )
    return Tempered(run.rows, run.log_weight[:, every - 1 :: every], diagnostics)


@dataclass(frozen=True)
class _Run:
    log_weight: Tensor  # (groups, sweeps) of the coldest chains
    overlap: Tensor  # (groups / 2, sweeps): share of equal sites in two groups
    rows: Tensor  # (groups, sweeps / every, sites)


class _Ladder:
    """All chains of all groups. Chains swap their temperatures and never their configurations."""

    def __init__(self, target: Target, groups: int, generator: Generator, levels: int | None = None) -> None:
        self.target, self.generator, self.device = target, generator, generator.device
        # A pair is rejected at a rate of about Δβ·std(H)/√π, and H spreads most at β = 0 (as long as nothing orders): with
        # this many levels the rejections of the whole ladder, shared out equally, stay below about two thirds a pair.
        spread = float(target.log_weight(self._uniform(1, 256)[0].T).std())
        levels = levels or 2 + math.ceil(0.8 * spread)
        largest = target.states * max(len(sites) for sites in target.groups)
        limit = max(1, BLOCK // largest) if self.device.type == "cpu" else levels * groups
        blocks = math.ceil(levels * groups / limit)
        self.width = math.ceil(levels * groups / blocks)
        # Chains first in memory would make every update of a group a scattered one. The last block may hold a few chains
        # too many: nobody looks at them.
        self.cells = self._uniform(blocks, self.width)  # (blocks, sites, chains of a block)
        self.log_weight = torch.cat([target.log_weight(block.T) for block in self.cells])
        self.betas = torch.linspace(0, 1, levels, dtype=torch.float64, device=self.device)
        self.beta = torch.zeros_like(self.log_weight)  # of each chain
        self.at = torch.arange(levels * groups, device=self.device).view(
            levels, groups
        )  # chain at each level of a group
        self.odd = False
        self.place(self.betas)

    def _uniform(self, blocks: int, width: int) -> Tensor:
        shape = (blocks, self.target.sites, width)
        space = self.target.space
        if space.sizes is not None:
            return (
                space.uniform(blocks * width, generator=self.generator)
                .T.reshape(-1, blocks, width)
                .transpose(0, 1)
                .contiguous()
            )
        return torch.randint(space.states, shape, generator=self.generator, device=self.device, dtype=torch.uint8)

    def place(self, betas: Tensor) -> None:
        """Set the temperatures and forget what was counted."""
        self.betas = betas
        self.beta[self.at] = betas[:, None].expand_as(self.at)
        self.swapped = torch.zeros(len(betas) - 1, dtype=torch.float64, device=self.device)
        self.tried = torch.zeros_like(self.swapped)
        self.trips = torch.zeros((), dtype=torch.int64, device=self.device)
        self.stage = torch.zeros_like(self.at.view(-1))  # 1: has been hottest; 2: and coldest since

    @property
    def acceptance(self) -> Tensor:
        """Mean acceptance of the swaps of each pair of levels."""
        return self.swapped / self.tried.clamp(min=1)

    def run(self, sweeps: int, *, every: int) -> _Run:
        """Sweep and swap; keep the coldest chains' log-weights always, and the chains themselves now and then."""
        groups, rows = self.at.shape[1], []
        log_weight = torch.empty((sweeps, groups), dtype=torch.float64, device=self.device)
        overlap = torch.empty((sweeps, groups // 2), dtype=torch.float64, device=self.device)
        blocks = (self.cells, self.beta.view(-1, self.width), self.log_weight.view(-1, self.width))
        for time in range(sweeps):
            for block, beta, weight in zip(*blocks, strict=True):
                weight += sweep(self.target, block.T, beta=beta, generator=self.generator)
            self.swap()
            log_weight[time] = self.log_weight[self.at[-1]]
            cold = self.chains(self.at[-1])
            overlap[time] = (cold[:, 0:-1:2] == cold[:, 1::2]).mean(0, dtype=torch.float64)
            if (time + 1) % every == 0:
                rows.append(cold.T)
        return _Run(log_weight.T.cpu(), overlap.T.cpu(), torch.stack(rows, dim=1).cpu())

    def chains(self, numbers: Tensor) -> Tensor:
        """Configurations of some chains, (sites, chains)."""
        sites = torch.arange(self.target.sites, device=self.device)[:, None]
        place = (numbers // self.width * self.target.sites + sites) * self.width + numbers % self.width
        return self.cells.view(-1).index_select(0, place.view(-1)).view(place.shape)

    def swap(self) -> None:
        """Try every second pair of neighbouring levels, and count how the chains travel."""
        start, self.odd = int(self.odd), not self.odd
        low, high = self.at[start:-1:2], self.at[start + 1 :: 2]  # (pairs, groups)
        gap = self.betas[start:-1:2] - self.betas[start + 1 :: 2]
        chance = torch.exp(gap[:, None] * (self.log_weight[high] - self.log_weight[low])).clamp(max=1)
        uniform = torch.rand(chance.shape, generator=self.generator, dtype=torch.float64, device=self.device)
        moved = torch.where(uniform < chance, high - low, 0)
        low += moved
        high -= moved
        self.beta[self.at] = self.betas[:, None].expand_as(self.at)
        self.swapped[start::2] += chance.mean(1)
        self.tried[start::2] += 1
        hot, cold = self.at[0], self.at[-1]
        self.trips += (self.stage[hot] == 2).sum()
        self.stage[hot] = 1
        self.stage[cold] = torch.where(self.stage[cold] == 1, 2, self.stage[cold])

    def respace(self) -> None:
        """Place the levels at equal steps of the rejections summed up along the ladder."""
        rejection = (1 - self.acceptance + 1e-3).cpu().numpy()  # never zero: the levels stay apart
        path = np.concatenate([[0.0], rejection.cumsum()])
        betas = np.interp(np.linspace(0, path[-1], len(path)), path, self.betas.cpu().numpy())
        self.place(torch.from_numpy(betas).to(self.device))
