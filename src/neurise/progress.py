"""How far a long computation is: redrawn in place in a terminal or a notebook, a plain line now and then in a log file."""

from __future__ import annotations

import os
import sys
import time
from typing import TYPE_CHECKING, Any, ClassVar, TextIO

if TYPE_CHECKING:
    from neurise.progress_display import Display

LINE_EVERY = 10.0
"""Seconds between two lines where the output is not a terminal."""
REDRAWN_EVERY = 0.1
"""Seconds between two drawings of a line that is redrawn in place."""


class Progress:
    """Shows how far a long computation is, with its rate and the time left.

    A computation that goes on from an earlier one says how much was ``done`` and what ``fraction`` that was, so that the
    rate and the time left are those of now.
    """

    drawing: ClassVar[Progress | None] = None
    """The one whose line is being redrawn: a terminal has room for one."""

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
        self.display = None if self.silent else _display(self.stream)
        self.insist = verbose is True  # a last line even of a short run in a log
        self.began = self.last = time.monotonic()
        self.done, self.fraction = done, fraction
        self.shown = False

    def update(self, done: int, fraction: float, *facts: str, last: bool = False) -> None:
        """Show the state, unless it was shown a moment ago."""
        now = time.monotonic()
        if self.silent:
            return
        pause = LINE_EVERY if self.display is None else REDRAWN_EVERY
        closing = last and (self.shown or self.insist or self.display is not None)
        if now - self.last < pause and not closing:
            return
        self.last, self.shown = now, True
        spent = max(now - self.began, 1e-9)
        gained = fraction - self.fraction
        left = f"{_clock(spent * (1 - fraction) / gained)} left" if gained > 0 and fraction < 1 else _clock(spent)
        rate = f"{(done - self.done) / spent:,.0f}/s"
        begin, counted = [self.what, f"{fraction:4.0%}"], [f"{done:,} {self.unit}", rate]
        if self.display is None:
            self.stream.write("  ".join([*begin, *counted, left, *facts]) + "\n")
            self.stream.flush()
            return
        if Progress.drawing is not self:
            Progress.end_drawing()  # of a phase before this one, which did not say that it is over
            Progress.drawing = self
        if self.display.narrow:  # what matters most
            counted = []
        self.display.draw(fraction, "  ".join([*begin, *counted, left, *facts]))
        if last:
            self.close()

    def say(self, message: str) -> None:
        """Print a line of its own."""
        if not self.silent:
            self.close()
            self.stream.write(message + "\n")
            self.stream.flush()

    def close(self) -> None:
        """Leave the line as it is, so that what comes next, a message or an error, begins on its own line."""
        if Progress.drawing is self:
            Progress.end_drawing()

    @staticmethod
    def end_drawing() -> None:
        """End the line that is being redrawn, if there is one."""
        drawing, Progress.drawing = Progress.drawing, None
        if drawing is not None and drawing.display is not None:
            drawing.display.end()


def _display(stream: TextIO) -> Display | None:
    """Find where to redraw a line in place; None where lines stand one below the other, as in a log file."""
    shell: Any = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    in_notebook = stream is sys.stderr and getattr(shell, "kernel", None) is not None
    if not in_notebook and (not stream.isatty() or os.environ.get("TERM") == "dumb"):
        return None
    from neurise.progress_display import found  # nobody else needs rich

    return found(stream, notebook=in_notebook)


def _clock(seconds: float) -> str:
    minutes, whole = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{whole:02}" if hours else f"{minutes}:{whole:02}"
