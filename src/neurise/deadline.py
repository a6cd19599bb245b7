"""When work ends: one limit of time for all phases of a run, and Ctrl-C, which every inner loop asks about."""

from __future__ import annotations

import math
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from types import FrameType

from neurise.interrupts import SIGNALS
from neurise.progress import Progress

Agree = Callable[[float, bool], tuple[float, bool]]
"""What several processes make of their own clocks and flags, so that all of them do the same."""

CLOCK: Callable[[], float] = time.monotonic
"""Seconds since any fixed moment: a test puts a clock here that it turns itself."""


@dataclass
class Interrupts:
    """Whether Ctrl-C or SIGTERM has asked the work to end."""

    asked: bool = False


_CURRENT: ContextVar[Interrupts | None] = ContextVar("interrupts", default=None)


@contextmanager
def noted_interrupts() -> Iterator[Interrupts]:
    """Let the first signal set ``asked``, so that no step is cut in two; a second one raises KeyboardInterrupt.

    Inside another one it is the same: what was asked for in a phase of a run holds for all that follow.
    """
    outer, noted = _CURRENT.get(), Interrupts()
    if outer is not None:
        yield outer
        return

    def note(signum: int, frame: FrameType | None) -> None:
        if noted.asked:
            raise KeyboardInterrupt
        noted.asked = True

    token, before = _CURRENT.set(noted), {}
    try:
        if threading.current_thread() is threading.main_thread():  # only the main thread may set handlers
            for number in SIGNALS:
                before[number] = signal.signal(number, note)
        yield noted
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        _CURRENT.reset(token)


@dataclass
class Work:
    """One phase of a run: when it must end, and what it shows until then.

    An inner loop asks ``left()`` once per iteration and leaves, with what it has, where nothing is.

    Args:
        seconds: how long the work may take; infinity is no limit.
        interrupts: what ends it at once.
        agree: how several processes agree on the time and on the interrupts; each question then waits for all of them.
        verbose: whether anything is shown, as in ``fit``.
        began: what the clock said in the beginning.
        shown: the progress that this phase and its parts show together, if they do.
    """

    seconds: float = math.inf
    interrupts: Interrupts = field(default_factory=Interrupts)
    agree: Agree | None = None
    verbose: bool | None = False
    began: float = field(default_factory=lambda: CLOCK())
    shown: Shown | None = None
    spent: float = field(init=False, default=0.0)  # seconds, when it was last asked what is left

    def left(self, done: int = 0) -> float:
        """Count pieces that are done, show how far the work is, and return the seconds until its end: 0 if it is over."""
        self.spent, asked = CLOCK() - self.began, self.interrupts.asked
        if self.agree is not None:
            self.spent, asked = self.agree(self.spent, asked)
        if self.shown is not None:
            self.shown.update(done)
        return 0.0 if asked else max(0.0, self.seconds - self.spent)

    def part(self, share: float, *, keep: float = 0.0, what: str = "", unit: str = "", total: int = 1) -> Work:
        """Begin a phase that may take a share of what is left after ``keep`` seconds for something else.

        It is shown as the whole is; or as ``what``, which consists of ``total`` pieces at most, each a ``unit``.
        """
        own = replace(self, seconds=share * max(0.0, self.left() - keep), began=CLOCK())
        if what and self.verbose is not False:
            own.shown = Shown(Progress(what, unit, verbose=self.verbose), own.began, own.seconds, max(1, total))
        return own


@dataclass
class Shown:
    """How far a phase and its parts are together."""

    progress: Progress
    began: float
    seconds: float
    total: int
    done: int = 0

    def update(self, done: int) -> None:
        """Show which share is done, of the pieces or of the time, whichever is more."""
        self.done += done
        by_time = (CLOCK() - self.began) / self.seconds if self.seconds else 1.0
        self.progress.update(self.done, min(1.0, max(self.done / self.total, by_time)))
