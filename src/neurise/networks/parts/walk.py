"""What a walk over the sites of rows answers: the contract of :mod:`neurise.walks`, which networks may keep themselves."""

from __future__ import annotations

from abc import ABC, abstractmethod

from torch import Tensor


class Walk(ABC):
    """Rows on their way through one cycle, or one sweep, from the last site to the first."""

    @abstractmethod
    def logits(self, u: int) -> Tensor:
        """Return the logits of site u, (n, states) up to a constant per row; for two states the log-odds, (n, 1)."""

    @abstractmethod
    def put(self, u: int, token: Tensor) -> None:
        """Set site u to its new tokens (n,)."""


def relative(logits: Tensor) -> Tensor:
    """Return the log-odds of token 1 where there are two states, (n, 1), else the logits as they are."""
    return logits[..., 1:] - logits[..., :1] if logits.shape[-1] == 2 else logits
