"""A progress line: redrawn in place on a terminal, a plain line now and then in a log file."""

from __future__ import annotations

import sys
import time
from typing import TextIO

LINE_EVERY = 10.0
"""Seconds between two lines where the output is not a terminal."""


class Progress:
    """Shows how far a long computation is, with its rate and the time left.

    A computation that goes on from an earlier one says how much was ``done`` and what ``fraction`` that was, so that the
    rate and the time left are those of now.
    """

    def __init__(
        self,
        what: str,
        unit: str,
        *,
        verbose: bool | None,
        stream: TextIO | None = None,
        done: int = 0,
        fraction: float = 0.0,
    ) -> None:
        self.what, self.unit, self.stream = what, unit, stream or sys.stderr
        self.silent = verbose is False
        self.terminal = self.stream.isatty()
        self.insist = verbose is True  # a last line even of a short run in a log
        self.began = self.last = time.monotonic()
        self.done, self.fraction = done, fraction
        self.shown = False
        self.open = False  # whether the terminal's cursor stands behind a line that is still to be redrawn

    def update(self, done: int, fraction: float, *facts: str, last: bool = False) -> None:
        """Show the state, unless it was shown a moment ago."""
        now = time.monotonic()
        if self.silent:
            return
        pause = 0.1 if self.terminal else LINE_EVERY
        closing = last and (self.shown or self.insist or self.terminal)
        if now - self.last < pause and not closing:
            return
        self.last, self.shown = now, True
        spent = max(now - self.began, 1e-9)
        gained = fraction - self.fraction
        left = f"{_clock(spent * (1 - fraction) / gained)} left" if gained > 0 and fraction < 1 else _clock(spent)
        rate = f"{(done - self.done) / spent:,.0f}/s"
        line = "  ".join([self.what, f"{fraction:4.0%}", f"{done:,} {self.unit}", rate, left, *facts])
        if self.terminal:
            filled = round(20 * fraction)
            self.stream.write(f"\r\x1b[2K{'━' * filled}{'╌' * (20 - filled)} {line}")
            self.open = True
            if last:
                self.close()
        else:
            self.stream.write(line + "\n")
        self.stream.flush()

    def say(self, message: str) -> None:
        """Print a line of its own."""
        if not self.silent:
            self.close()
            self.stream.write(message + "\n")
            self.stream.flush()

    def close(self) -> None:
        """Leave the line as it is, so that what comes next, a message or an error, begins on its own line."""
        if self.open:
            self.stream.write("\n")
            self.stream.flush()
            self.open = False


def _clock(seconds: float) -> str:
    minutes, whole = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{whole:02}" if hours else f"{minutes}:{whole:02}"
