"""Timing: seconds, memory, and what the device can do at most."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import torch


class Timing(NamedTuple):
    """The best of a few runs, and the memory that they took."""

    seconds: float
    peak_bytes: int | None  # on a GPU alone; a CPU does not tell one run from another


def timed(work: Callable[[], object], device: torch.device, *, repeats: int = 3, patience: float = 3.0) -> Timing:
    """Time some work after a run that is not counted; the best of ``repeats``, or of fewer once ``patience`` seconds are over."""
    work()
    _wait(device)
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats(device)
    best, began = float("inf"), time.perf_counter()
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        _wait(device)
        now = time.perf_counter()
        best = min(best, now - start)
        if now - began > patience:
            break
    return Timing(best, torch.cuda.max_memory_allocated(device) if device.type == "cuda" else None)


def peak_flops(device: torch.device) -> float:
    """Additions and multiplications a second of a large matrix product: bfloat16 on a GPU, float32 on a CPU."""
    size, dtype = (8192, torch.bfloat16) if device.type == "cuda" else (1024, torch.float32)
    generator = torch.Generator(device).manual_seed(0)
    first, second = (torch.randn(size, size, generator=generator, device=device).to(dtype) for _ in range(2))
    return 2 * size**3 / timed(lambda: first @ second, device, repeats=10).seconds


def slope(sizes: Sequence[float], seconds: Sequence[float]) -> float:
    """Exponent of the growth of time with size: the slope of the least-squares line of their logarithms."""
    return float(np.polyfit(np.log(sizes), np.log(seconds), 1)[0])


def steps_a_second(history: Sequence[Mapping[str, float]]) -> float:
    """How fast a run went from its first evaluation to its last: its start, the capture of a step on a GPU, is left out.

    Where there is one evaluation alone, the start counts.
    """
    first, last = history[0] if len(history) > 1 else {"step": 0, "seconds": 0.0}, history[-1]
    return (last["step"] - first["step"]) / (last["seconds"] - first["seconds"])


def _wait(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)
