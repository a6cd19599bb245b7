"""Count evaluations of a model: show progress, and estimate early how long they will take."""

from __future__ import annotations

import time

from neurise.progress import Progress

LONG = 30.0
"""Seconds above which the estimate is said, and what would take less."""
ENOUGH = 1 / 200
"""The share of the work after which its time can be estimated."""


class Evaluations:
    """The evaluations that a recovery needs, ``total`` of them."""

    def __init__(self, total: int, *, verbose: bool | None) -> None:
        self.total, self.done, self.told = max(1, total), 0, False
        self.began = time.monotonic()
        self.progress = Progress("couplings", "evaluations", verbose=verbose)

    def count(self, number: int) -> None:
        """Add to the number of configurations that were evaluated."""
        self.done += number
        fraction = min(1.0, self.done / self.total)
        if not self.told and fraction >= ENOUGH:
            self.told = True
            self._estimate((time.monotonic() - self.began) / fraction)
        self.progress.update(self.done, fraction, last=fraction == 1)

    def _estimate(self, seconds: float) -> None:
        if seconds < LONG:
            return
        self.progress.say(
            f"{self.total:,} evaluations of the model will take about {_length(seconds)}. Fewer contexts take less (rows=, "
            "--contexts 1); a pairwise model (neurise train --model pairwise) is far quicker to ask"
        )

    def close(self) -> None:
        """End the progress line."""
        self.progress.close()


def _length(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.0f} min"
