"""A progress line: redrawn in place on a terminal, a plain line now and then in a log file."""

from __future__ import annotations

import sys
import time
from typing import TextIO

LINE_EVERY = 10.0
"""Seconds between two lines where the output is not a terminal."""


class Progress:
    """Shows how far a long computation is, with its rate and the time left."""

    def __init__(self, what: str, unit: str, *, verbose: bool | None, stream: TextIO | None = None) -> None:
        self.what, self.unit, self.stream = what, unit, stream or sys.stderr
        self.silent = verbose is False
        self.terminal = self.stream.isatty()
        self.insist = verbose is True  # a last line even of a short run in a log
        self.began = self.last = time.monotonic()
        self.shown = False

    def update(self, done: int, fraction: float, *facts: str, last: bool = False) -> None:
        """Show the state, unless it was shown a moment ago; the first call also starts the clock."""
        now = time.monotonic()
        if self.silent:
            return
        pause = 0.1 if self.terminal else LINE_EVERY
        closing = last and (self.shown or self.insist or self.terminal)
        if now - self.last < pause and not closing:
            return
        self.last, self.shown = now, True
        spent = max(now - self.began, 1e-9)
        left = f"{_clock(spent * (1 - fraction) / fraction)} left" if 0 < fraction < 1 else _clock(spent)
        line = "  ".join([self.what, f"{fraction:4.0%}", f"{done:,} {self.unit}", f"{done / spent:,.0f}/s", left, *facts])
        if self.terminal:
            filled = round(20 * fraction)
            self.stream.write(f"\r\x1b[2K{'━' * filled}{'╌' * (20 - filled)} {line}" + ("\n" if last else ""))
        else:
            self.stream.write(line + "\n")
        self.stream.flush()

    def say(self, message: str) -> None:
        """Print a line of its own."""
        if not self.silent:
            self.stream.write(("\n" if self.terminal and self.shown else "") + message + "\n")
            self.stream.flush()


def _clock(seconds: float) -> str:
    minutes, whole = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{whole:02}" if hours else f"{minutes}:{whole:02}"
