"""Ctrl-C and SIGTERM: noted during training, so that a step is never cut in two, and never raised in the middle of an import."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar, Token
from types import FrameType
from typing import Any

SIGNALS = (signal.SIGINT, signal.SIGTERM)
"""Ctrl-C, and what Slurm, Docker and Kubernetes send before they kill."""
AGAIN = 0.05
"""Seconds after which a signal that came during an import is looked at again."""
IMPORTING = "<frozen importlib"
"""How the file names of the frames begin that import a module."""

_CURRENT: ContextVar[Interrupts | None] = ContextVar("interrupts", default=None)


class Interrupts:
    """While entered, the first signal sets :attr:`asked`, so that a step is never interrupted; a second one interrupts.

    One that is entered inside another is the same: what was asked for in a phase of a run holds for all that follow.
    """

    def __init__(self) -> None:
        self._outer: Interrupts | None = None
        self._was_asked = False
        self._before: dict[signal.Signals, Any] = {}
        self._token: Token[Interrupts | None] | None = None

    @property
    def asked(self) -> bool:
        """Whether a signal came."""
        return self._was_asked if self._outer is None else self._outer.asked

    def __enter__(self) -> Interrupts:
        self._outer = _CURRENT.get()
        if self._outer is None:
            self._token = _CURRENT.set(self)
            if threading.current_thread() is threading.main_thread():  # only the main thread may set handlers
                for number in SIGNALS:
                    self._before[number] = signal.signal(number, self._note)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)
        if self._token is not None:
            _CURRENT.reset(self._token)

    def _note(self, signum: int, frame: FrameType | None) -> None:
        if self._was_asked:
            raise KeyboardInterrupt
        self._was_asked = True


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
