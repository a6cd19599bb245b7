"""Where to compute: the device, its random numbers and its memory."""

from __future__ import annotations

import os
from functools import lru_cache
from pathlib import Path

import torch
from torch import nn

from neurise import checks

COPIES = 7
"""Weights, gradients, two moments of the optimiser, the average, the best so far, and a working copy."""


def resolve(device: str | torch.device | None) -> torch.device:
    """Return the device that is asked for, after checking that it is there; for None, a GPU where there is one."""
    if device is not None and not isinstance(device, str | torch.device):
        raise ValueError(f"device must be a name like 'cpu' or 'cuda', or a torch.device, got {device!r}")
    return _resolved(device)


@lru_cache
def _resolved(device: str | torch.device | None) -> torch.device:
    if device is None:
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        place = torch.device(device)
        torch.empty(0, device=place)
    # Depending on how torch was built, a device that is not there is an error of one kind or the other.
    except (RuntimeError, AssertionError, TypeError) as error:
        reason = str(error).splitlines()[0]
        raise ValueError(f"device {device!r} cannot be used here: {reason}") from error
    if place.type == "meta":
        raise ValueError(f"device {device!r} cannot be used here: it holds shapes and no numbers; use 'cpu' or 'cuda'")
    return place


def generator(seed: int | None, device: torch.device) -> torch.Generator:
    """Make a source of random numbers on a device; without a seed, a fresh one."""
    source = torch.Generator(device)
    if seed is None:
        source.seed()
        return source
    return source.manual_seed(checks.seed(seed))


def parameter_count(network: nn.Module) -> int:
    """Return how many numbers a network learns or keeps."""
    return sum(parameter.numel() for parameter in network.parameters())


def training_bytes(weights: int, rows: int, batch_size: int, bytes_per_example: int) -> int:
    """Estimate the peak memory of training, where weights and rows take so many bytes."""
    return COPIES * weights + rows + batch_size * bytes_per_example


def available_bytes(device: torch.device) -> int | None:
    """How much memory is free on a device; None where that cannot be told."""
    if device.type == "cuda":
        return int(torch.cuda.mem_get_info(device)[0])
    meminfo = Path("/proc/meminfo")
    if meminfo.exists():
        line = next((line for line in meminfo.read_text().splitlines() if line.startswith("MemAvailable:")), None)
        return int(line.split()[1]) * 1024 if line else None
    try:
        return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (ValueError, OSError):
        return None


def total_bytes(device: torch.device) -> int:
    """How much memory a device has, used or not; of a CPU, what is free, or 1 GB where that cannot be told."""
    if device.type == "cuda":
        return int(torch.cuda.get_device_properties(device).total_memory)
    return available_bytes(device) or 2**30


def readable(size: float) -> str:
    """Write a number of bytes as a person would."""
    for unit in ("bytes", "kB", "MB"):
        if size < 1000:
            return f"{size:.0f} {unit}"
        size /= 1000
    return f"{size:.1f} GB"


def sampling_bytes(rows: int, sites: int, symbol_bytes: int) -> int:
    """Return what rows take at least while they are drawn: a number each, tokens in two orders of the sites, and symbols."""
    return rows * (8 + sites * (2 + symbol_bytes))


def has_room(needed: int, device: torch.device) -> bool:
    """Whether the estimated use fits into free memory, as far as that can be told."""
    available = available_bytes(device)
    return available is None or needed <= available


def require_memory(needed: int, device: torch.device, advice: str) -> None:
    """Raise MemoryError if the estimated use exceeds free memory."""
    if not has_room(needed, device):
        free = readable(available_bytes(device) or 0)
        raise MemoryError(f"this needs about {readable(needed)} of memory on {device}, and {free} are free; {advice}")


def require_room(
    least: int, sites: int, device: torch.device, *, width: int, depth: int, batch_size: int, members: int = 1
) -> None:
    """Refuse networks of at least so many numbers each that cannot be trained, before any is made, even as shapes."""
    advice = f"use a smaller width, depth or training__batch_size: they are {width:,}, {depth:,} and {batch_size:,}"
    if members > 1:
        advice += f", for {members:,} members"
    require_memory(training_bytes(4 * members * least, 0, batch_size, 4 * (sites + width)), device, advice)
