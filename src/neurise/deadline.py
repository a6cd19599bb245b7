"""Limits of time: one deadline for all phases of a run, which every inner loop asks whether it may go on."""

from __future__ import annotations

import copy
import math
import time
from collections.abc import Callable
from dataclasses import dataclass

from neurise.progress import Progress

Clock = Callable[[], float]
"""Seconds since any fixed moment."""
Agree = Callable[[float, bool], tuple[float, bool]]
"""What several processes make of their own clocks and flags, so that all of them do the same."""

CLOCK: Clock = time.monotonic
"""The clock of deadlines that are given none: a test puts one here that it turns itself."""


def now() -> float:
    """Read the clock."""
    return CLOCK()


def never() -> bool:
    """Answer that nobody has called the work off."""
    return False


class Deadline:
    """When work must end: after so many seconds, or as soon as it is called off.

    Args:
        seconds: how long the work may take from now on; None is no limit.
        clock: what tells the time, in the place of :data:`CLOCK`.
        called_off: whether a person has asked the work to end, by Ctrl-C say.
        agree: how several processes agree on the time and on the call; each question then waits for all of them.
    """

    def __init__(
        self,
        seconds: float | None = None,
        *,
        clock: Clock | None = None,
        called_off: Callable[[], bool] = never,
        agree: Agree | None = None,
    ) -> None:
        self.seconds, self.clock = math.inf if seconds is None else seconds, clock or now
        self.called_off, self.agree = called_off, agree
        self.began = self.clock()

    @property
    def is_limited(self) -> bool:
        """Whether there is a limit of time."""
        return self.seconds < math.inf

    def look(self) -> tuple[float, bool]:
        """Return the seconds since the beginning, and whether the work was called off."""
        spent, called_off = self.clock() - self.began, self.called_off()
        return (spent, called_off) if self.agree is None else self.agree(spent, called_off)

    @property
    def spent(self) -> float:
        """Seconds since the beginning."""
        return self.look()[0]

    @property
    def left(self) -> float:
        """Seconds until the end, 0 or more."""
        return max(0.0, self.seconds - self.spent)

    @property
    def is_over(self) -> bool:
        """Whether the work must end now."""
        spent, called_off = self.look()
        return called_off or spent >= self.seconds

    def part(self, share: float, keep: float = 0.0) -> Deadline:
        """Begin a phase that may take a share of what is left after ``keep`` seconds for something else."""
        own = share * max(0.0, self.left - keep) if self.is_limited else None
        return Deadline(own, clock=self.clock, called_off=self.called_off, agree=self.agree)


class Work:
    """One phase of a run: it shows how far it is, and ends by its deadline.

    An inner loop asks ``goes_on()`` once per iteration and leaves, with what it has, where the answer is no. ``advance()``
    counts the pieces that are done, of ``total``.
    """

    def __init__(
        self,
        what: str = "",
        unit: str = "",
        *,
        deadline: Deadline | None = None,
        total: int = 1,
        verbose: bool | None = False,
    ) -> None:
        self.deadline = deadline or Deadline()
        self._shown = _Shown(Progress(what, unit, verbose=verbose), self.deadline, max(1, total))

    def goes_on(self) -> bool:
        """Show how far the work is; return whether there is time for another iteration."""
        self._shown.update()
        spent, called_off = self.deadline.look()
        return not called_off and spent < self.deadline.seconds

    def advance(self) -> None:
        """Count a piece that is done."""
        self._shown.done += 1

    def part(self, share: float) -> Work:
        """Begin a piece of this work that may take a share of the time that is left; it is shown as the whole is."""
        piece = copy.copy(self)
        piece.deadline = self.deadline.part(share)
        return piece

    def close(self) -> None:
        """End the line that shows the progress."""
        self._shown.progress.close()


@dataclass
class _Shown:
    """What a phase and its pieces show together."""

    progress: Progress
    deadline: Deadline  # of the phase
    total: int
    done: int = 0

    def update(self) -> None:
        """Show which share is done, of the pieces or of the time, whichever is more."""
        spent = self.deadline.clock() - self.deadline.began
        by_time = spent / self.deadline.seconds if self.deadline.seconds else 1.0
        self.progress.update(self.done, min(1.0, max(self.done / self.total, by_time)))
