"""Capturing a computation on a GPU, to launch all of its kernels at once."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Generator, Tensor

from neurise.recording import WARM_UP, record


class Captured:
    """A function without arguments that is run as it is a few times, then captured as a CUDA graph, then replayed.

    Every call does what the function does, once. It must read and write the same tensors each time, draw its random
    numbers from ``generator`` alone, and never wait for the device.
    """

    def __init__(self, function: Callable[[], Tensor], generator: Generator, device: torch.device) -> None:
        self.function, self.generator, self.device = function, generator, device
        self.calls = 0
        self.stream: torch.cuda.Stream | None = None
        self.graph: torch.cuda.CUDAGraph | None = None
        self.result: Tensor | None = None

    def __call__(self) -> Tensor:
        """Run the function, in whatever way; the result is the caller's to keep."""
        with torch.cuda.device(self.device):
            if self.graph is None:
                self.calls += 1
                if self.calls <= WARM_UP:
                    return self._on_a_side_stream()
                self.graph, self.result = record(self.function, self.stream, self.generator)
            self.graph.replay()
            assert self.result is not None
            return self.result.clone()

    def _on_a_side_stream(self) -> Tensor:
        if self.stream is None:
            self.stream = torch.cuda.Stream()  # type: ignore[no-untyped-call]
        self.stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(self.stream):
            result = self.function()
        torch.cuda.current_stream().wait_stream(self.stream)
        return result.clone()
