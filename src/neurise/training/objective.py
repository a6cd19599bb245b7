"""What a model must offer to be trained."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from torch import Generator, Tensor, nn

from neurise.rows import Batch

Prediction = Callable[..., Tensor]
"""What predicts: a network, or its function with other weights."""


class Objective(Protocol):
    """A network and what it should minimise.

    Everything random is in :meth:`draw` and everything learnt in :meth:`losses`, so that the same draws can be used again
    (frozen validation noise), cut into slices (several processes), or given to many networks at once.
    """

    @property
    def network(self) -> nn.Module:
        """Return the module whose parameters are learnt."""

    def draw(self, batch: Batch, *, generator: Generator) -> Any:
        """Noise n rows: a tuple of tensors, or of None, with n as first axis."""

    def losses(self, network: Prediction, drawn: Any) -> Tensor:
        """Return the training loss of each example, (n,). Pure: ``network`` may be any function of the network's signature."""

    def scores(self, network: Prediction, drawn: Any) -> Tensor:
        """Return what the validation compares, lower is better, (n,): a proper score, whatever the training loss is."""

    @property
    def noisings(self) -> int:
        """How often a row that is held back is noised to be scored; once where nothing is random."""

    @property
    def bytes_per_example(self) -> int:
        """Estimate the memory of one example on the way forward and back."""
