"""Dynamically binarised MNIST without labels: grey values are chances, drawn anew for every copy of the training digits.

The last 5,000 training digits validate. The test digits are drawn once, by seed 0.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from neurise.datasets._idx import STANDARD, read_idx
from quality_tasks._fit import Row, fitted

HELD = 5000


def run(arguments: argparse.Namespace) -> Iterator[Row]:
    """Fit ``--copies`` drawings of each digit: as many as the epochs of the time, and no epoch sees one twice."""
    train, test = (grey_values(STANDARD[place]) for place in (0, 2))
    fixed = drawn(test, 0)
    for seed in arguments.seeds:
        held = drawn(train[-HELD:], seed + 1)
        rows = np.concatenate([drawn(train[:-HELD], 1000 * (seed + 1) + copy) for copy in range(arguments.copies)])
        model, seconds = fitted(arguments, seed, rows, validation=held, alphabet=[0, 1])
        yield {"seed": seed, "nll": -model.log_prob(fixed).mean(), "copies": arguments.copies, "seconds": seconds}


def grey_values(name: str) -> np.ndarray:
    """Read the grey values of digits, (digits, 784)."""
    images = read_idx(Path(os.environ["NEURISE_DATA"]) / "mnist" / f"{name}.gz")
    return images.reshape(len(images), -1)


def drawn(grey: np.ndarray, seed: int) -> np.ndarray:
    """Draw a pixel as 1 with the chance that its grey value is, value/255."""
    uniform = np.random.default_rng(seed).random(grey.shape, dtype=np.float32)
    bits: np.ndarray = (uniform * 255 < grey).astype(np.uint8)
    return bits
