"""What every executor is handed out as."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor
from dataclasses import dataclass


@dataclass(frozen=True)
class Pool:
    """An executor, how many pieces to hand to it at a time, and what to call it."""

    executor: Executor
    ahead: Callable[[], int]
    name: str
