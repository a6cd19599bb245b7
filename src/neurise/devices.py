"""Where to compute, and the random numbers there."""

from __future__ import annotations

import torch

from neurise import checks


def resolve(device: str | torch.device | None) -> torch.device:
    """Return the device that is asked for, after checking that it is there; for None, a GPU where there is one."""
    if device is None:
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        place = torch.device(device)
        torch.empty(0, device=place)
    # Depending on how torch was built, a device that is not there is an error of one kind or the other.
    except (RuntimeError, AssertionError, TypeError) as error:
        reason = str(error).splitlines()[0]
        raise ValueError(f"device {device!r} cannot be used here: {reason}") from error
    return place


def generator(seed: int | None, device: torch.device) -> torch.Generator:
    """Make a source of random numbers on a device; without a seed, a fresh one."""
    source = torch.Generator(device)
    if seed is None:
        source.seed()
        return source
    return source.manual_seed(checks.seed(seed))
