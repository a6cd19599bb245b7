"""Ctrl-C and SIGTERM: one and the same, and never raised in the middle of an import."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

SIGNALS = (signal.SIGINT, signal.SIGTERM)
"""Ctrl-C, and what Slurm, Docker and Kubernetes send before they kill."""
AGAIN = 0.05
"""Seconds after which a signal that came during an import is looked at again."""
IMPORTING = "<frozen importlib"
"""How the file names of the frames begin that import a module."""


@contextmanager
def raised_outside_imports() -> Iterator[None]:
    """Raise KeyboardInterrupt for Ctrl-C and for SIGTERM alike, but not before an import that is under way is over.

    A module whose import is broken off stays half imported: whoever needs it later in the same process fails.
    """
    before: dict[signal.Signals, Any] = {}
    if threading.current_thread() is threading.main_thread():
        for number in (*SIGNALS, signal.SIGALRM):
            before[number] = signal.signal(number, _raise_outside_imports)
    try:
        yield
    finally:
        if before:
            signal.setitimer(signal.ITIMER_REAL, 0)
        for number, handler in before.items():
            signal.signal(number, handler)


def _raise_outside_imports(signum: int, frame: FrameType | None) -> None:
    place = frame
    while place is not None:
        if place.f_code.co_filename.startswith(IMPORTING):
            signal.setitimer(signal.ITIMER_REAL, AGAIN)  # whose signal comes here again
            return
        place = place.f_back
    raise KeyboardInterrupt
