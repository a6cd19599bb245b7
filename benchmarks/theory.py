"""The figures of docs/evidence/theory.md: what ``neurise theory`` says of four chains, in one file.

    python benchmarks/theory.py --json benchmarks/measured/theory.json      # two minutes on one core

Each chain is one run of the command, whose words stand beside it. Everything is exact but the training of the models.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch

from neurise import datasets, theory
from neurise.dataset import Dataset
from neurise.experiments._code import machine, script_version
from neurise.files import write_text
from neurise.noise.round_robin import RoundRobin

KEEP_PROBS = (0.0, 0.3, 0.5, 0.7, 0.9)
CYCLES, SIZES, SEEDS = 4, (100, 1000, 10_000), (0, 1, 2)
RARE, MOST = 1e-4, 0.9
"""Below this a state is rare; how many states hold so much of the probability."""

Row = dict[str, Any]


def chains() -> Iterator[tuple[str, str, Dataset, RoundRobin]]:
    """Yield a name, the words of the command, the law and the noise."""
    cold = datasets.edwards_anderson(side=3)
    hot = datasets.edwards_anderson(side=3, J=0.4)
    potts = datasets.potts(side=2)
    yield "cold", "edwards_anderson:side=3", cold, RoundRobin(cold.space, 0.5, 2)
    yield "hot", "edwards_anderson:side=3,J=0.4", hot, RoundRobin(hot.space, 0.5, 2)
    yield "potts", "potts:side=2", potts, RoundRobin(potts.space, 0.5, 2)
    yield "weak noise", "edwards_anderson:side=3 --keep-prob 0.9 --cycles 2", cold, RoundRobin(cold.space, 0.9, 2)


def rows_of(data: Dataset, noise: RoundRobin) -> Iterator[Row]:
    """Yield the states, δ after every cycle, the reverse kernels, and every model from every start."""
    law = np.sort(data.pmf)[::-1]
    most = int(np.searchsorted(law.cumsum(), MOST)) + 1
    yield {"of": "states", "states": len(law), "rare": int((law < RARE).sum()), "most": most}
    for keep_prob in KEEP_PROBS:
        curve = theory.delta_curve(data.pmf, data.space, keep_prob, CYCLES)
        for cycles in range(CYCLES + 1):
            row = {"of": "delta", "keep_prob": keep_prob, "cycles": cycles}
            yield row | {"delta": float(curve[cycles * data.space.sites])}
    for kernel in theory.compare(data.pmf, noise):
        facts = kernel._asdict()
        yield {"of": "kernels", "kernel": facts.pop("name"), **facts}
    for model in theory.learning_curve(data.pmf, noise, SIZES, SEEDS):
        for start, terms in model.starts.items():
            row = {"of": "models", "start": start, "rows": model.rows, "seed": model.seed, "memorised": model.memorised}
            sums = {"mismatch": terms.mismatch, "sum_largest": terms.sum_largest, "sum_mean": terms.sum_mean}
            yield row | terms.paper._asdict() | sums | {"mean_eta": terms.mean_eta, "sharp": terms.sharp}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", metavar="FILE", help="write every figure")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    made: Row = {
        "command": " ".join(["python benchmarks/theory.py", *sys.argv[1:]]),
        "commands": {},
        "code": script_version(__file__),
        "machine": machine("cpu"),
        "rows": list[Row](),
    }
    for chain, words, data, noise in chains():
        made["commands"][chain] = f"neurise theory {words}"
        for row in rows_of(data, noise):
            made["rows"].append({"chain": chain, **row})
            print(json.dumps(made["rows"][-1], ensure_ascii=False), flush=True)
        if arguments.json:
            write_text(Path(arguments.json), json.dumps(made, indent=1, ensure_ascii=False))


if __name__ == "__main__":
    main()
