"""What calibration does to samples and to the likelihood: the same networks without it, by default, and matched too well.

    python benchmarks/drift.py --data caltech --side 12 --rows 600 --seeds 0 1 2 --json drift.json
    python benchmarks/drift.py --data dna

``caltech`` is the middle of the silhouettes, side × side pixels, split at random by seed 0; any other name is a set of debd,
with the validation rows that come with it. Every seed is one fit of ``NeurISE(**settings)``, of which three models are made:
``without``, the networks as they are; ``default``, as ``fit`` left it; and ``noise``, matched with a spread of 1, which takes
the noise of the moments for the truth. Figures are of as many samples as there are test rows, and of test rows: their NLL
in nats, the mean error of correlations over its floor (training rows in the place of samples), and MMD².
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch

import neurise
from neurise.conditionals.known_sites import KnownSites
from neurise.conditionals.moment_matched import MomentMatched, match
from neurise.experiments._code import machine, script_version
from neurise.files import write_text
from neurise.rows import Rows

TRAIN, VALIDATION = 4100, 2264
TOO_WELL = 1.0
"""The spread τ at which the noise of the moments is matched as well."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", default="caltech", help="caltech, or a set of debd")
    parser.add_argument("--side", type=int, default=28, help="of caltech")
    parser.add_argument("--rows", type=int, default=3900, help="to learn from, of caltech")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0])
    parser.add_argument("--steps", type=int)
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", help="a setting, as JSON")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--json", metavar="FILE")
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    given = {name: value for name, value in vars(arguments).items() if name != "json"}
    made: dict[str, Any] = {
        "command": " ".join(["python benchmarks/drift.py", *sys.argv[1:]]),
        "code": script_version(__file__),
        "machine": machine(arguments.device),
        **given,
        "figures": [],
    }
    for figure in figures(arguments):
        made["figures"].append(figure)
        print(json.dumps(figure), flush=True)
        if arguments.json:
            write_text(Path(arguments.json), json.dumps(made, indent=1))


def figures(arguments: Any) -> Iterator[dict[str, Any]]:
    """Fit once per seed, and look at three models."""
    train, validation, test = parts(arguments)
    settings = {name: json.loads(value) for name, _, value in (text.partition("=") for text in arguments.set)}
    for seed in arguments.seeds:
        model = neurise.NeurISE().set_params(alphabet=[0, 1], **settings)
        began = time.process_time()
        model.fit(
            train, validation=validation, seed=seed, max_steps=arguments.steps, device=arguments.device, verbose=False
        )
        spent = time.process_time() - began
        facts = {"seed": seed, "calibration": model.calibration_, "processor_seconds": spent}
        for name, conditionals in forms(model, train, seed).items():
            model.conditionals_ = conditionals.lay_out()
            drawn = model.sample(len(test), seed=seed)
            error = neurise.metrics.cross_correlation(drawn, test, other=train, alphabet=[0, 1]).mean_abs
            mmd = neurise.metrics.mmd(drawn, test, alphabet=[0, 1])
            yield {
                **facts,
                "form": name,
                "nll": -float(model.log_prob(test).mean()),
                "correlations": float(error),
                "over_floor": float(error) / error.floor,
                "mmd": float(mmd),
                "mmd_error": mmd.error,
            }


def forms(model: neurise.NeurISE, train: np.ndarray, seed: int) -> dict[str, Any]:
    """Return the conditionals as they were learnt, as they are, and matched too well."""
    whole: Any = model.conditionals_
    known = whole if isinstance(whole, KnownSites) else None
    inner = whole if known is None else known.inner
    bare = inner.inner if isinstance(inner, MomentMatched) else inner
    rows = Rows(torch.from_numpy(train[:, list(model.schema_.order)]).to(torch.uint8))
    generator = torch.Generator(model.device_).manual_seed(seed)
    close = match(bare, rows, model.schema_.constant, spread=TOO_WELL, generator=generator)
    found = {"without": bare, "default": inner, "noise": close}
    if known is None:
        return found
    return {name: KnownSites(own, known.constant, unseen=known.unseen) for name, own in found.items()}


def parts(arguments: Any) -> tuple[np.ndarray, np.ndarray | None, np.ndarray]:
    """Return rows to learn from, to validate and to test."""
    if arguments.data != "caltech":
        data = neurise.datasets.debd(arguments.data)
        return data.train, data.validation, data.test
    X = neurise.datasets.caltech101_silhouettes().train
    X = X[np.random.default_rng(0).permutation(len(X))]
    first = (28 - arguments.side) // 2
    middle = slice(first, first + arguments.side)
    X = X.reshape(-1, 28, 28)[:, middle, middle].reshape(len(X), -1)
    return X[: arguments.rows], None, X[TRAIN + VALIDATION :]


if __name__ == "__main__":
    main()
