"""How far is D3PM's sampler from the data when its network is perfect?

    python benchmarks/d3pm_posterior.py                       # seconds on one core
    python benchmarks/d3pm_posterior.py --json benchmarks/measured/d3pm_posterior.json

The network is replaced by the true P(x_0,i | x_t), which is what cross-entropy finds in the end, and the law of the sampler is
computed exactly, on small spaces. What is left is the error of the steps: with the exact posterior it falls like 1/T; with the
published one, which lacks a factor under uniform noise, it stays, however many steps there are.
"""

from __future__ import annotations

import argparse
import json
import platform
import sys
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import torch

from neurise import datasets
from neurise.experiments._code import machine, script_version
from neurise.files import write_text
from neurise.laws import distance
from neurise.sampling import parallel

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))  # the true posterior is the tests' own
import d3pm_cases

DATA: dict[str, Callable[[], Any]] = {
    "Edwards–Anderson 2×2": lambda: datasets.edwards_anderson(side=2, seed=0),
    "Edwards–Anderson 3×3": lambda: datasets.edwards_anderson(side=3, seed=0),
    "Potts 2×2, 3 states": lambda: datasets.potts(side=2, states=3, seed=0),
}
CHAINS = [("uniform", "exact"), ("uniform", "published"), ("absorbing", "exact")]
"""Under absorbing noise both posteriors are the same."""


def total_variation(data: Any, noise: str, posterior: str, timesteps: int) -> float | None:
    """TV of the sampler's exact law; None where the space with masks is too large for a benchmark of seconds."""
    if (data.space.states + (noise == "absorbing")) ** data.space.sites > 1024:
        return None
    pmf = np.asarray(data.pmf)
    chain = d3pm_cases.true_chain(pmf, data.space, noise, timesteps, posterior)
    return distance(parallel.law(chain), torch.from_numpy(pmf))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--timesteps", type=int, nargs="+", default=[4, 16, 64, 256])
    parser.add_argument("--json", metavar="FILE", help="also write every figure")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    print(f"exact TV, perfect network; torch {torch.__version__}, {platform.machine()}\n")
    print("| data | noise | posterior | " + " | ".join(f"T = {timesteps}" for timesteps in arguments.timesteps) + " |")
    print("|---|---|---|" + "---|" * len(arguments.timesteps))
    results = []
    for (name, make), (noise, posterior) in product(DATA.items(), CHAINS):
        data = make()
        values = [total_variation(data, noise, posterior, timesteps) for timesteps in arguments.timesteps]
        if None in values:
            continue
        print(
            f"| {name} | {noise} | {posterior} | " + " | ".join(f"{value:.5f}" for value in values) + " |", flush=True
        )
        keys = {"data": name, "noise": noise, "posterior": posterior}
        pairs = zip(arguments.timesteps, values, strict=True)
        results += [keys | {"timesteps": timesteps, "tv": value} for timesteps, value in pairs]
    if arguments.json:
        made = {
            "command": " ".join(["python benchmarks/d3pm_posterior.py", *sys.argv[1:]]),
            "code": script_version(__file__),
            "machine": machine("cpu"),
            "rows": results,
        }
        write_text(Path(arguments.json), json.dumps(made, indent=1, ensure_ascii=False))


if __name__ == "__main__":
    main()
