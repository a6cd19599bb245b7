"""What a page shows of a training under way: learning curves and fresh samples."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from typing import Any

import torch

from neurise.modeling import by_tokens
from neurise.modeling.model import Model
from neurise.player.layouts import choose
from neurise.player.stage import Actor, Stage

SAMPLES = 12
APART = 2.0
"""Seconds between two sets of samples at least."""
MOST_POINTS = 5_000


class TrainingFeed:
    """A callback of ``fit`` that remembers losses and draws samples every now and then."""

    def __init__(self, stage: Stage) -> None:
        self.stage, self.lock = stage, threading.Lock()
        self.points, self.samples = list[dict[str, float]](), list[list[int]]()
        self.drawn_at, self.last, self.ended = -1, 0.0, ""

    def __call__(self, step: int, seconds: float, losses: Mapping[str, float], model: Model) -> None:
        """Take down one evaluation."""
        point = {"step": step, "seconds": round(seconds, 2), **{name: float(loss) for name, loss in losses.items()}}
        rows = None
        if time.monotonic() - self.last > APART:
            started, state = time.monotonic(), torch.get_rng_state()
            rows = by_tokens.draw(model, SAMPLES, {}, None, 0).tolist()
            torch.set_rng_state(state)
            # Drawing may take as long as it likes, but never most of the time.
            self.last = time.monotonic() + 10 * (time.monotonic() - started)
        with self.lock:
            if not self.stage.actors:
                self._introduce(model)
            if len(self.points) < MOST_POINTS:
                self.points.append(point)
            if rows is not None:
                self.samples, self.drawn_at = rows, step

    def end(self, model: Model) -> None:
        """Show the model as it was learnt."""
        with self.lock:
            self.ended = str(model.stopped_)
            self._introduce(model)
            self.samples, self.drawn_at = by_tokens.draw(model, SAMPLES, {}, None, 0).tolist(), -1

    def _introduce(self, model: Model) -> None:
        """Put the model on the stage; what it knows of the data does not change while it is trained."""
        stage = self.stage
        stage.layout = choose(model.schema_, stage.data, stage.shape, stage.asked_layout)
        stage.actors = [Actor(type(model).__name__.lower(), model)]

    def told(self, since: int) -> dict[str, Any]:
        """Return the points after the first so many, and the newest samples."""
        with self.lock:
            return {
                "points": self.points[since:],
                "samples": self.samples,
                "drawn_at": self.drawn_at,
                "ended": self.ended,
                "ready": bool(self.stage.actors),
            }
