"""Recording work on a GPU as a CUDA graph, to launch all of its kernels at once."""

from __future__ import annotations

import gc
import threading
from collections.abc import Callable
from typing import TypeVar

import torch
from torch import Generator

WARM_UP = 3
"""Runs on the stream before a recording: libraries choose their kernels and take their memory in the first ones."""

Result = TypeVar("Result")
_alone = threading.Lock()


def record(
    work: Callable[[], Result], stream: torch.cuda.Stream | None, generator: Generator | None = None
) -> tuple[torch.cuda.CUDAGraph, Result]:
    """Record a function that has been run on this stream before; return what replays it, and what it returned.

    Nothing may be freed by the collector meanwhile: to destroy an older graph is not permitted while one is recorded. Threads
    record one after another, as there is one collector for all of them.
    """
    with _alone:
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        if generator is not None:
            graph.register_generator_state(generator)
        collects = gc.isenabled()
        gc.collect()
        gc.disable()
        try:
            # Other threads may use the device meanwhile, as tuning with several workers does.
            with torch.cuda.graph(graph, stream=stream, capture_error_mode="thread_local"):
                result = work()
        finally:
            if collects:
                gc.enable()
    return graph, result
