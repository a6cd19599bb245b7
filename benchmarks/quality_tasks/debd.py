"""Density-estimation sets: test likelihoods."""

from __future__ import annotations

import argparse
from collections.abc import Iterator

import neurise
from quality_tasks._fit import Row, fitted

GROUP = "name"


def run(arguments: argparse.Namespace) -> Iterator[Row]:
    """Fit each set with the validation rows that come with it."""
    for name in arguments.names:
        data = neurise.datasets.debd(name)
        for seed in arguments.seeds:
            model, seconds = fitted(arguments, seed, data.train, validation=data.validation, alphabet=[0, 1])
            nll = -model.log_prob(data.test).mean()
            yield {"name": name, "seed": seed, "nll": nll, "parameters": model.num_parameters_, "seconds": seconds}
