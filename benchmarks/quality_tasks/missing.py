"""Density-estimation sets with some of the training entries removed at random: test likelihoods of complete rows."""

from __future__ import annotations

import argparse
from collections.abc import Iterator

import numpy as np

import neurise
from quality_tasks._fit import Row, fitted

GROUP = "set"


def run(arguments: argparse.Namespace) -> Iterator[Row]:
    """Fit each set as it is, and with a share of the entries of the training and validation rows missing."""
    for name in arguments.names:
        data = neurise.datasets.debd(name)
        for seed in arguments.seeds:
            rng = np.random.default_rng(seed)
            parts = {"train": data.train, "validation": data.validation}
            gone = {part: rng.random(rows.shape) < arguments.gone for part, rows in parts.items()}
            for share in (0.0, arguments.gone):
                kept = {part: np.where(gone[part] & (share > 0), np.nan, rows) for part, rows in parts.items()}
                model, seconds = fitted(arguments, seed, kept["train"], validation=kept["validation"], alphabet=[0, 1])
                nll = -model.log_prob(data.test).mean()
                yield {"set": f"{name}, {share:.0%} missing", "seed": seed, "nll": nll, "seconds": seconds}
