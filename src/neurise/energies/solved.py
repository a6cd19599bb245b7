"""What exact sums say about the laws of a family, however they are done."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from torch import Tensor

from neurise.energies.family import Family


@dataclass(frozen=True)
class Solved:
    """What is known of the law of a class at some parameters."""

    log_z: float
    moments: Tensor  # (size,): the gradient of log Z
    draw: Callable[[int, np.random.Generator], Tensor]  # n independent rows of tokens


class ExactLaws(Protocol):
    """Laws of a family whose sums can be done."""

    @property
    def family(self) -> Family:
        """Whose laws they are."""

    def solve(self, theta: Tensor, kind: int) -> Solved:
        """Return log Z and its gradient, and how to draw."""
