"""Walks as CUDA graphs: a cycle is recorded once and then replayed without Python.

The cycle reads its rows, its uniform numbers and its number from buffers that stay where they are, so one recording serves
every cycle, every number of rows up to its size, and weights that have changed since.
"""

from __future__ import annotations

from collections.abc import Callable
from weakref import WeakKeyDictionary, ref

import torch
from torch import Generator, Tensor

from neurise import recording
from neurise.categorical import uniforms
from neurise.conditionals.base import Conditionals
from neurise.sampling.incremental import forgotten, most_at_once, run_cycle, transposed

SIZES = (256, 1024, *range(2048, 16385, 2048))
"""Rows of a recording: a batch is padded to the next of them, and a larger one is cut into the largest."""
KEPT = 4
"""Recordings that one set of conditionals keeps; each holds a few layers of its rows."""

Recorder = Callable[[Callable[[], None]], Callable[[], None]]


def available(device: torch.device) -> bool:
    """Whether work on this device can be recorded."""
    return device.type == "cuda"


@torch.no_grad()
def reverse(
    conditionals: Conditionals,
    x: Tensor,
    y: Tensor | None = None,
    *,
    generator: Generator,
    precision: str = "float32",
    record: Recorder | None = None,
) -> Tensor:
    """Run the chain from X_T = x back to X_0, (n, sites) tokens, as :func:`neurise.sampling.reverse.reverse` does.

    ``record`` turns a function into one that repeats it; without CUDA none is needed, and the function repeats itself.
    """
    noise, state = conditionals.noise, transposed(x)
    for cycle in reversed(range(noise.cycles)):
        top = noise.top(cycle)
        level = uniforms(top * len(x), generator=generator).view(top, len(x))
        if not forgotten(conditionals, cycle):
            _run(conditionals, state, y, level, cycle=cycle, precision=precision, record=record)
    return state.T.contiguous()


@torch.no_grad()
def sweep(
    conditionals: Conditionals,
    x: Tensor,
    y: Tensor | None = None,
    *,
    generator: Generator,
    record: Recorder | None = None,
) -> Tensor:
    """Redraw every site once at time 0, as :func:`neurise.sampling.corrector.sweep` does."""
    state = transposed(x)
    level = uniforms(state.numel(), generator=generator).view(state.shape)
    _run(conditionals, state, y, level, sweep=True, record=record)
    return state.T.contiguous()


def _run(
    conditionals: Conditionals,
    state: Tensor,
    y: Tensor | None,
    level: Tensor,
    *,
    cycle: int = 0,
    sweep: bool = False,
    precision: str = "float32",
    record: Recorder | None = None,
) -> None:
    """Run one cycle, or one sweep, in place on tokens (sites, n), in blocks of the sizes that are recorded."""
    n, sizes = state.shape[1], sizes_for(conditionals)
    for start in range(0, n, sizes[-1]):
        rows = slice(start, min(n, start + sizes[-1]))
        size = next(size for size in sizes if size >= rows.stop - rows.start)
        tape = _tape(conditionals, size, len(level), y is not None, sweep, precision, record or _record)
        tape.run(cycle, state[:, rows], None if y is None else y[rows], level[:, rows])


def sizes_for(conditionals: Conditionals) -> tuple[int, ...]:
    """Return the sizes of recordings whose walks fit into memory."""
    most = most_at_once(conditionals)
    return tuple(size for size in SIZES if size <= most) or (most,)


class Tape:
    """One cycle of ``size`` rows, recorded, and the buffers that it reads and writes."""

    def __init__(
        self,
        conditionals: Conditionals,
        size: int,
        top: int,
        *,
        labels: bool,
        sweep: bool,
        precision: str,
        record: Recorder,
    ) -> None:
        sites, device = conditionals.noise.space.sites, conditionals.device
        self.noise, self.sweep = conditionals.noise, sweep
        self.cycle = torch.zeros(1, dtype=torch.int64, device=device)
        self.x = torch.zeros(sites, size, dtype=torch.uint8, device=device)
        self.y = torch.zeros(size, dtype=torch.int64, device=device) if labels else None
        self.level = torch.full((top, size), 0.5, dtype=torch.float64, device=device)

        asked = ref(conditionals)  # a recording ends with its conditionals, and must not keep them alive

        def one_cycle() -> None:
            living = asked()
            assert living is not None
            walk = living.walk(self.x, self.y, self.cycle, top=top, sweep=sweep, precision=precision)
            run_cycle(walk, self.noise, self.x, self.level, sweep=sweep)

        self._repeat = record(one_cycle)

    def __len__(self) -> int:
        return self.x.shape[1]

    def run(self, cycle: int, x: Tensor, y: Tensor | None, level: Tensor) -> None:
        """Run one cycle in place on x, (sites, n); the rows beyond n are padding, and nobody looks at them."""
        n = x.shape[1]
        self.cycle.fill_(cycle)
        self.x[:, :n] = x
        self.level[:, :n] = level
        if self.y is not None and y is not None:
            self.y[:n] = y
        self._repeat()
        x.copy_(self.x[:, :n])


_tapes: WeakKeyDictionary[Conditionals, dict[tuple[object, ...], Tape]] = WeakKeyDictionary()


def _tape(
    conditionals: Conditionals, size: int, top: int, labels: bool, sweep: bool, precision: str, record: Recorder
) -> Tape:
    """Find a recording, or make one."""
    kept = _tapes.setdefault(conditionals, {})
    key = (size, top, labels, sweep, precision, record)
    if key not in kept:
        # Those of walks that keep much of their rows may take half of the device's memory together.
        most = 2 * most_at_once(conditionals)
        while kept and (len(kept) >= KEPT or sum(map(len, kept.values())) + size > most):
            kept.pop(next(iter(kept)))
        kept[key] = Tape(conditionals, size, top, labels=labels, sweep=sweep, precision=precision, record=record)
    return kept[key]


def _record(work: Callable[[], None]) -> Callable[[], None]:
    """Record a function on the present CUDA device, and return what replays it."""
    stream = torch.cuda.Stream()  # type: ignore[no-untyped-call]
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(recording.WARM_UP):
            work()
    return recording.record(work, stream)[0].replay  # on the same stream, whose workspaces exist by now
