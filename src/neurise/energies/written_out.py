r"""Laws of a family that are written out, block by block, on any device.

The sites are cut into A and B: :math:`H = H_A(x_A) + H_B(x_B) + g(x_A) \cdot \varphi(x_B)`, so that the law is a matrix of
:math:`|A| \times |B|` entries made by one matrix product, and so are its moments. B is kept small: to draw is to draw from the
marginal of A, and then from one line of the matrix for each of the rows. Products are done in float32, with an error of a few parts
in ten millions in single entries; sums over lines are done in float64.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from torch import Tensor

from neurise.energies.family import Family
from neurise.energies.solved import Solved

MOST_STATES = 2**25
"""Configurations that are enumerated over and over: a fraction of a second each time."""
SECOND = 2**10
"""Configurations of B at most."""
BLOCK, BLOCK_ON_GPU = 2**19, 2**26
"""Entries of the law that are held at a time: on a CPU they stay in the cache."""
DRAWN = 2**22
"""Entries of lines that rows are drawn from at a time."""


@dataclass(frozen=True, eq=False)
class Enumerated:
    """Laws that are written out."""

    family: Family
    device: torch.device

    @cached_property
    def _cut(self) -> int:
        """How many sites are in A: at least one."""
        digits = self.family.space.digits
        cut = len(digits)
        while cut > 1 and math.prod(digits[cut - 1 :]) <= SECOND:
            cut -= 1
        return cut

    @cached_property
    def _halves(self) -> tuple[Tensor, Tensor]:
        """All configurations of A and of B, tokens."""
        space, cut = self.family.space, self._cut
        first = space.part(0, cut).configurations()
        second = space.part(cut, space.sites).configurations() if cut < space.sites else torch.zeros(1, 0).byte()
        return first, second

    @cached_property
    def _seen(self) -> tuple[Tensor, Tensor]:
        """The columns of both, (configurations, columns of the half) float64."""
        sites = torch.zeros(1, self.family.space.sites, dtype=torch.uint8)
        shown, (first, second) = list[Tensor](), self._halves
        inside = self.family.columns[:, 0] < self._cut
        for half, place, columns in ((first, slice(0, self._cut), inside), (second, slice(self._cut, None), ~inside)):
            whole = sites.repeat(len(half), 1)
            whole[:, place] = half
            shown.append(self.family.shown(whole)[:, columns].to(self._device_of(torch.float64)))
        return shown[0], shown[1]

    def _device_of(self, dtype: torch.dtype) -> torch.device:
        return torch.device("cpu") if self.device.type == "mps" and dtype == torch.float64 else self.device

    def _weights(self, theta: Tensor, kind: int) -> tuple[Tensor, Tensor, Tensor]:
        """Return H of each half alone, and the couplings between them, float64."""
        family, (first, second) = self.family, self._seen
        width, cut = len(family.columns), first.shape[1]
        theta = theta.to(first.device)
        fields = theta[: family.num_fields].view(family.kinds, width)[kind]
        matrix = theta.new_zeros(width, width)
        line, column, _ = family.pairs.to(theta.device).unbind(1)
        matrix[line, column] = theta[family.num_fields :]
        own = first @ fields[:cut] + (first @ matrix[:cut, :cut] * first).sum(1)
        other = second @ fields[cut:] + (second @ matrix[cut:, cut:] * second).sum(1)
        return own, other, first @ matrix[:cut, cut:]

    def solve(self, theta: Tensor, kind: int) -> Solved:
        """Write the law out once."""
        own, other, between = self._weights(theta, kind)
        first, second = self._seen
        high = float(own.max()), float(other.max())
        lines = _beside(between, own - high[0], torch.ones_like(own)).float()
        across = _beside(second, torch.ones_like(other), other - high[1]).T.contiguous().float()
        summed = _beside(second, torch.ones_like(other)).float()
        step = max(1, (BLOCK if own.device.type == "cpu" else BLOCK_ON_GPU) // len(second))
        tops, sums, columns = list[Tensor](), list[Tensor](), list[Tensor]()
        buffer = lines.new_empty(min(step, len(own)), len(second))
        for start in range(0, len(own), step):
            part = lines[start : start + step]
            law = torch.mm(part, across, out=buffer[: len(part)])
            tops.append(law.max())
            law.sub_(tops[-1]).exp_()
            sums.append((law @ summed).double())
            columns.append(law.sum(0).double())
        top = torch.stack(tops).double()
        height = top.max()
        scale = (top - height).exp()
        met = torch.cat([found * factor for found, factor in zip(sums, scale, strict=True)])
        total = met[:, -1].sum()
        line, met = met[:, -1] / total, met[:, :-1] / total
        column = (torch.stack(columns) * scale[:, None]).sum(0) / total
        moments = self._moments(line, column, first.T @ met, kind).cpu()
        log_z = float(height + total.log()) + high[0] + high[1]

        def draw(n: int, rng: np.random.Generator) -> Tensor:
            return self._draw(line, between, other, n, rng)

        return Solved(log_z, moments, draw)

    def _moments(self, line: Tensor, column: Tensor, met: Tensor, kind: int) -> Tensor:
        """Put the moments where the parameters stand."""
        family, (first, second) = self.family, self._seen
        width, cut = len(family.columns), first.shape[1]
        square = line.new_zeros(width, width)
        square[:cut, :cut] = first.T @ (first * line[:, None])
        square[cut:, cut:] = second.T @ (second * column[:, None])
        square[:cut, cut:] = met
        found = line.new_zeros(family.size)
        found[kind * width : (kind + 1) * width] = torch.cat([line @ first, column @ second])
        one, two, _ = family.pairs.to(line.device).unbind(1)
        found[family.num_fields :] = square[one, two]
        return found

    def _draw(self, line: Tensor, between: Tensor, other: Tensor, n: int, rng: np.random.Generator) -> Tensor:
        """Draw A by its marginal, then B given A."""
        chance = line.cpu().numpy()
        place = np.repeat(np.arange(len(chance)), rng.multinomial(n, chance / chance.sum()))
        rng.shuffle(place)
        (first, second), shown = self._halves, self._seen[1].float()
        between, other = between.float(), other.float()
        level, step = torch.from_numpy(rng.random(n)).float(), max(1, DRAWN // len(second))
        rows = list[Tensor]()
        for start in range(0, n, step):
            some = torch.from_numpy(place[start : start + step])
            law = torch.softmax(between[some.to(between.device)] @ shown.T + other, 1).cumsum_(1)
            here = level[start : start + step, None].to(law.device) * law[:, -1:]
            found = torch.searchsorted(law, here, right=True).squeeze(1).clamp_(max=len(second) - 1).cpu()
            rows.append(torch.cat([first[some], second[found]], 1))
        return torch.cat(rows) if rows else torch.zeros(0, self.family.space.sites, dtype=torch.uint8)


def _beside(matrix: Tensor, *columns: Tensor) -> Tensor:
    return torch.cat([matrix, *(column[:, None] for column in columns)], dim=1)
