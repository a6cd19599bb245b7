"""Where rows are kept while a network learns from them: as they are, packed, or in the host's memory."""

from __future__ import annotations

import torch

from neurise import devices
from neurise.rows import Rows, Source
from neurise.training.packed import PackedRows, packed
from neurise.training.stacked import ManyRows
from neurise.training.streamed import DrawnChunks, StreamedRows

PACK_ABOVE = 2**24
"""Tokens that take more bytes than this are packed on a GPU. To unpack a minibatch costs two small kernels."""


def place(
    rows: Rows, states: int, device: torch.device, *, batch_size: int, seed: int, room: int | None = None
) -> Source:
    """Put rows where a network on a device can learn from them; ``room`` is how many bytes they may take there.

    Small ones as they are; large ones packed; and those that do not fit even so stay packed in the host's memory, from
    where minibatches are streamed. On the CPU rows are in the host's memory anyhow. The first two give the same draws.
    """
    as_they_are, sites = rows.num_bytes, rows.x.shape[-1]
    if fits(as_they_are, room) and (device.type == "cpu" or as_they_are <= PACK_ABOVE):
        return rows.to(device)
    small = packed(rows, states)
    parts = (small.x, small.y, small.weights, small.fold, small.missing)
    if fits(sum(part.nbytes for part in parts if part is not None), room):
        return PackedRows(small.to(device), sites, states)
    return PackedRows(StreamedRows(DrawnChunks(small, seed), batch_size, device), sites, states)


def place_many(parts: list[Rows], states: int, device: torch.device) -> Source:
    """Put the rows of many models on a device, packed where they are large."""
    rows = ManyRows.of(parts)
    if device.type == "cpu" or rows.num_bytes <= PACK_ABOVE:
        return rows.to(device)
    small = [packed(part, states) for part in parts]
    return PackedRows(ManyRows.of(small).to(device), parts[0].x.shape[-1], states)


def room_for_rows(device: torch.device, others: int) -> int | None:
    """How many bytes rows may take on a device where ``others`` are needed besides; None where that is not known.

    A fifth of the memory is left alone: estimates are no more than that. On the CPU the rows are in memory already.
    """
    available = None if device.type == "cpu" else devices.available_bytes(device)
    return None if available is None else max(0, int(0.8 * available) - others)


def is_streamed(source: Source) -> bool:
    """Whether rows stay in the host's memory, or on its disk."""
    return isinstance(source.packed if isinstance(source, PackedRows) else source, StreamedRows)


def fits(size: int, room: int | None) -> bool:
    """Whether there is room."""
    return room is None or size <= room
