"""Work for the tests of executors; worker processes import it by name."""

from __future__ import annotations

import os
import time
from pathlib import Path

import torch


def facts() -> tuple[int, str | None, int]:
    """Tell about the process: how many threads, which GPU, which number."""
    return torch.get_num_threads(), os.environ.get("CUDA_VISIBLE_DEVICES"), os.getpid()


def linger(begun: Path, ended: Path, seconds: float) -> None:
    """Be at work for a while; files tell that it began and that it was left to end."""
    begun.touch()
    time.sleep(seconds)
    ended.touch()


def meet(folder: Path, number: int) -> tuple[int, str | None, int]:
    """Wait until so many processes are at work here, so that each has one piece; then tell about this one."""
    (folder / str(os.getpid())).touch()
    deadline = time.monotonic() + 120
    while len(list(folder.iterdir())) < number and time.monotonic() < deadline:
        time.sleep(0.01)
    return facts()
