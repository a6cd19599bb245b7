"""The incremental reverse chain as a CUDA graph: a cycle is recorded once and then replayed without Python.

The cycle reads its rows, its uniform numbers and its contexts from buffers that stay where they are, so one recording
serves every cycle, every number of rows up to its size, and weights that have changed since.
"""

from __future__ import annotations

from collections.abc import Callable
from weakref import WeakKeyDictionary

import torch
from torch import Generator, Tensor

from neurise import recording
from neurise.conditionals import Conditionals
from neurise.sampling import _plan
from neurise.sampling._plan import Plan
from neurise.sampling.categorical import uniforms
from neurise.sampling.incremental import Walk, run_cycle

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
    plans = _plan.make(conditionals, precision)
    return run(conditionals, plans, x, y, generator=generator, precision=precision, record=record)


@torch.no_grad()
def run(
    conditionals: Conditionals,
    plans: list[Plan],
    x: Tensor,
    y: Tensor | None = None,
    *,
    generator: Generator,
    precision: str = "float32",
    record: Recorder | None = None,
) -> Tensor:
    """Run all cycles of the members' plans from rows x, (n, sites); recordings are kept with the conditionals."""
    plan = plans[0]
    state, n = x.T.clone(memory_format=torch.contiguous_format), len(x)
    size = next((size for size in SIZES if size >= n), SIZES[-1])
    tape = _tape(conditionals, plans, size, y is not None, precision, record or _record)
    pieces = [slice(start, start + size) for start in range(0, n, size)]
    for cycle in reversed(range(plan.noise.cycles)):
        level = uniforms(state.numel(), generator=generator).view(state.shape)
        if cycle >= plan.cycles:
            continue  # forgotten: see Plan
        for rows in pieces:
            tape.run(cycle, state[:, rows], None if y is None else y[rows], level[:, rows])
    return state.T.contiguous()


class Tape:
    """A recorded cycle and the buffers that it reads and writes."""

    def __init__(self, plans: list[Plan], size: int, *, labels: bool, record: Recorder) -> None:
        device, sites = plans[0].context.device, plans[0].noise.space.sites
        self.plans = plans
        self.now = [(plan.context[0].clone(), plan.known[0].clone()) for plan in plans]  # of the cycle at hand
        self.x = torch.zeros(sites, size, dtype=torch.uint8, device=device)
        self.level = torch.zeros(sites, size, dtype=torch.float64, device=device)
        self.y = torch.zeros(size, dtype=torch.int64, device=device) if labels else None
        with torch.cuda.device_of(self.x):  # type: ignore[no-untyped-call]
            self._repeat = record(self._cycle)

    def _cycle(self) -> None:
        pairs = zip(self.plans, self.now, strict=True)
        run_cycle([Walk(plan, *now, self.x, self.y) for plan, now in pairs], self.level)

    def run(self, cycle: int, x: Tensor, y: Tensor | None, level: Tensor) -> None:
        """Run one cycle in place on x, (sites, n); the rows beyond n are padding, and nobody looks at them."""
        n = x.shape[1]
        for plan, (context, known) in zip(self.plans, self.now, strict=True):
            context.copy_(plan.context[cycle])
            known.copy_(plan.known[cycle])
        self.x[:, :n] = x
        self.level[:, :n] = level
        if self.y is not None and y is not None:
            self.y[:n] = y
        self._repeat()
        x.copy_(self.x[:, :n])


_tapes: WeakKeyDictionary[Conditionals, dict[tuple[object, ...], Tape]] = WeakKeyDictionary()


def _tape(
    conditionals: Conditionals, plans: list[Plan], size: int, labels: bool, precision: str, record: Recorder
) -> Tape:
    """Find a recording, with the numbers of the present plans in it, or make one."""
    kept = _tapes.setdefault(conditionals, {})
    first = plans[0]
    kind = (first.grows, first.bonus, *(one.shape for one in first.tensors()), *first.constant)
    key = (size, labels, precision, record, len(plans), *kind)
    if key in kept:
        for mine, theirs in zip(kept[key].plans, plans, strict=True):
            mine.copy_(theirs)
        return kept[key]
    while len(kept) >= KEPT:
        kept.pop(next(iter(kept)))
    # A plan's tensors may belong to the network: what a recording reads must stay where it is.
    kept[key] = Tape([plan.map(torch.clone) for plan in plans], size, labels=labels, record=record)
    return kept[key]


def _record(work: Callable[[], None]) -> Callable[[], None]:
    """Record a function on the present CUDA device, and return what replays it."""
    stream = torch.cuda.Stream()  # type: ignore[no-untyped-call]
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(recording.WARM_UP):
            work()
    return recording.record(work, stream)[0].replay  # on the same stream, whose workspaces exist by now
