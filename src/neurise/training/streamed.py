"""Rows that are too many for the device, or for the memory: they come over a chunk ahead."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass

import torch
from torch import Generator, Tensor

from neurise.rows import Batch, Chunks, Rows

CHUNK_BYTES = 2**26
"""About so many bytes are brought over at once."""
CHUNK_STEPS = 256
"""At most so many minibatches are brought over at once."""


@dataclass(frozen=True)
class Chunk:
    """The rows of some steps, on the device, and what tells that they have arrived."""

    batch: Batch
    arrived: torch.cuda.Event | None


class DrawnChunks:
    """Chunks of rows in the host's memory, drawn with replacement."""

    def __init__(self, rows: Rows, seed: int) -> None:
        self.rows, self.seed = rows, seed
        self.empty = _each(Batch(rows.x, rows.y, rows.fold, rows.missing), lambda part: part[:0])

    def __len__(self) -> int:
        return len(self.rows)

    def chunk(self, number: int, size: int) -> Batch:
        """Draw rows by their weight; every chunk has random numbers of its own."""
        return self.rows.draw(size, generator=torch.Generator().manual_seed(_seed_of(self.seed, number)))


class StreamedRows:
    """Minibatches of rows in the host's memory or on its disk, brought to the device while earlier steps compute.

    The rows of a step follow from the seed and the number of the step alone, so that a run that was stopped goes on with the
    same ones. They are others than those that rows on the device would give. ``advance`` is called before each step: what a
    captured step reads stays at the same place in the device's memory.
    """

    def __init__(self, rows: Chunks, batch_size: int, device: torch.device) -> None:
        self.rows, self.batch_size, self.place = rows, batch_size, device
        self.steps = max(1, min(CHUNK_STEPS, CHUNK_BYTES // (batch_size * rows.empty.x.shape[-1])))  # of a chunk
        on_gpu = device.type == "cuda"
        self._copies = torch.cuda.Stream(device) if on_gpu else None  # type: ignore[no-untyped-call]
        self._worker = ThreadPoolExecutor(1, "rows")
        self._next: tuple[int, Future[Chunk]] | None = None
        self._number: int | None = None  # of the chunk that is here
        size = self.steps * batch_size
        self._here = _each(
            rows.empty,
            lambda part: torch.zeros((size, *part.shape[1:]), dtype=part.dtype, device=device),
        )
        self._first = torch.zeros((), dtype=torch.int64, device=device)  # of this step's rows in the chunk
        self._every = torch.arange(batch_size, device=device)

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def device(self) -> torch.device:
        """Where minibatches come out."""
        return self.place

    @property
    def num_bytes(self) -> int:
        """How much memory the chunks take on the device: the one in use, and the next."""
        return 2 * self._here.x.numel()

    def advance(self, step: int) -> None:
        """Make ready for a step; where its chunk is another, it takes the place of the last."""
        number, within = divmod(step, self.steps)
        if number != self._number:
            if self._next is None or self._next[0] != number:
                self._next = number, self._worker.submit(self._bring, number)
            self._take(self._next[1].result())
            self._number = number
            self._next = number + 1, self._worker.submit(self._bring, number + 1)
        self._first.fill_(within * self.batch_size)

    def draw(self, n: int, *, generator: Generator) -> Batch:
        """Return the rows of this step; they do not use the generator."""
        if n != self.batch_size:
            raise ValueError(f"rows are streamed in batches of {self.batch_size}, not {n}")
        index = self._first + self._every
        return _each(self._here, lambda part: part[index])

    def spread(self, n: int, *, generator: Generator) -> Batch:
        """Repeat the rows to make n of them, as rows on the device do; of rows on disk, take the first n."""
        if not isinstance(self.rows, DrawnChunks):
            return _each(self.rows.chunk(0, n), lambda part: part.to(self.place))
        order = torch.randperm(n, generator=generator, device=self.place).cpu()
        return _each(self.rows.rows.at((order.double() + 0.5) / n), lambda part: part.to(self.place))

    def _take(self, chunk: Chunk) -> None:
        if chunk.arrived is not None:
            torch.cuda.current_stream(self.place).wait_event(chunk.arrived)
        for mine, theirs in zip(self._here, chunk.batch, strict=True):
            if mine is not None and theirs is not None:
                mine.copy_(theirs)
                if chunk.arrived is not None:  # its memory may be used again only after this copy
                    theirs.record_stream(torch.cuda.current_stream(self.place))

    def _bring(self, number: int) -> Chunk:
        batch = self.rows.chunk(number, self.steps * self.batch_size)
        if self._copies is None:
            return Chunk(batch, None)
        with torch.cuda.stream(self._copies):
            there = _each(batch, lambda part: part.pin_memory().to(self.place, non_blocking=True))
            arrived = self._copies.record_event()
        arrived.synchronize()  # in this thread: the pinned memory must outlive the copy
        return Chunk(there, arrived)


def _each(batch: Batch, change: Callable[[Tensor], Tensor]) -> Batch:
    return Batch(*(None if part is None else change(part) for part in batch))  # type: ignore[arg-type]


def _seed_of(seed: int, number: int) -> int:
    """Give every chunk random numbers of its own."""
    return int.from_bytes(hashlib.sha256(f"{seed} of chunk {number}".encode()).digest()[:7])
