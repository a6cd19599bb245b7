"""Taking part in a training loop: something else in the place of its steps."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from neurise.training.state import TrainingState
from neurise.training.step import Step


def replace_steps(
    monkeypatch: pytest.MonkeyPatch, instead: Callable[[TrainingState, Callable[[], torch.Tensor]], torch.Tensor]
) -> None:
    """Call ``instead(state, step)`` wherever the loop makes a step; ``step()`` is the genuine one and returns its loss."""
    genuine = Step.__call__
    monkeypatch.setattr(Step, "__call__", lambda step, progress: instead(step.state, lambda: genuine(step, progress)))
