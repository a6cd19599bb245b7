"""Tokens packed into bytes: eight sites of two states in one, four of four, two of sixteen."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import torch
from torch import Generator, Tensor

from neurise.rows import Batch, Rows, Source


def bits_for(states: int) -> int:
    """How many bits a token takes: one, two, four or eight, so that none lies in two bytes."""
    return next(bits for bits in (1, 2, 4, 8) if states <= 2**bits)


def packed_bytes(sites: int, states: int) -> int:
    """How many bytes a row takes."""
    return -(-sites * bits_for(states) // 8)


def pack(x: Tensor, states: int) -> Tensor:
    """Pack tokens (..., sites) uint8 into bytes (..., ⌈sites · bits / 8⌉); the first site has the lowest bits."""
    bits = bits_for(states)
    if bits == 8:
        return x
    together = 8 // bits
    packed = torch.zeros((*x.shape[:-1], packed_bytes(x.shape[-1], states)), dtype=torch.uint8, device=x.device)
    for place in range(together):
        part = x[..., place::together]
        packed[..., : part.shape[-1]] |= part << (bits * place)
    return packed


def unpack(packed: Tensor, sites: int, states: int) -> Tensor:
    """Undo :func:`pack`: (..., bytes) → (..., sites) uint8."""
    bits = bits_for(states)
    if bits == 8:
        return packed
    shifts = torch.arange(0, 8, bits, dtype=torch.uint8, device=packed.device)
    tokens: Tensor = (packed[..., None] >> shifts) & (2**bits - 1)
    return tokens.flatten(-2)[..., :sites]


def packed(rows: Rows, states: int) -> Rows:
    """Pack the tokens of rows, and their gaps: a bit each."""
    gaps = None if rows.missing is None else pack(rows.missing.to(torch.uint8), 2)
    return replace(rows, x=pack(rows.x, states), missing=gaps)


@dataclass(frozen=True)
class PackedRows:
    """Rows that are kept packed; a minibatch is unpacked where it is drawn. The draws are those of the rows themselves."""

    packed: Source
    sites: int
    states: int

    @classmethod
    def of(cls, rows: Rows, states: int) -> PackedRows:
        """Pack rows, where they are."""
        return cls(packed(rows, states), rows.x.shape[-1], states)

    def __len__(self) -> int:
        return len(self.packed)

    @property
    def device(self) -> torch.device:
        """Where minibatches come out."""
        return self.packed.device

    @property
    def num_bytes(self) -> int:
        """How much memory the packed rows take."""
        return self.packed.num_bytes

    @property
    def advance(self) -> Callable[[int], None] | None:
        """Return what makes the packed rows ready for a step."""
        return self.packed.advance

    def draw(self, n: int, *, generator: Generator) -> Batch:
        """Draw n rows with replacement, each with probability proportional to its weight."""
        return self._unpacked(self.packed.draw(n, generator=generator))

    def spread(self, n: int, *, generator: Generator) -> Batch:
        """Repeat the rows to make n of them, each as often as its weight says to within one, in random order."""
        return self._unpacked(self.packed.spread(n, generator=generator))

    def _unpacked(self, batch: Batch) -> Batch:
        gaps = None if batch.missing is None else unpack(batch.missing, self.sites, 2).bool()
        return batch._replace(x=unpack(batch.x, self.sites, self.states), missing=gaps)
