"""What a model must offer to be trained."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from torch import Generator, Tensor, nn

Network = Callable[..., Tensor]


class Objective(Protocol):
    """A network and what it should minimise.

    Everything random is in :meth:`draw` and everything learnt in :meth:`losses`, so that the same draws can be used again
    (frozen validation noise), cut into slices (several processes), or given to many networks at once.
    """

    @property
    def network(self) -> nn.Module:
        """Return the module whose parameters are learnt."""

    def draw(self, x: Tensor, y: Tensor | None, *, generator: Generator) -> Any:
        """Noise the rows x (n, sites): a tuple of tensors, or of None, with n as first axis."""

    def losses(self, network: Network, drawn: Any) -> Tensor:
        """Return the training loss of each example, (n,). Pure: ``network`` may be any function of the network's signature."""

    def scores(self, network: Network, drawn: Any) -> Tensor:
        """Return what the validation compares, lower is better, (n,): a proper score, whatever the training loss is."""

    @property
    def bytes_per_example(self) -> int:
        """Roughly how much memory one example takes on the way forward and back."""
