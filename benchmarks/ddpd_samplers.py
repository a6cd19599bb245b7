"""How far are the samplers of DDPD from the data when its networks are perfect?

    python benchmarks/ddpd_samplers.py                       # four minutes on one core
    python benchmarks/ddpd_samplers.py --json benchmarks/measured/ddpd_samplers.json

The planner and the denoiser are replaced by the true ones, which is what training finds in the end. The laws of the samplers
"planned" and "parallel" are computed exactly. That of "adaptive" is not known: its figure is that of 20,000 draws, and
"floor" is what as many exact draws show.
"""

from __future__ import annotations

import argparse
import json
import platform
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch

from neurise import datasets
from neurise.experiments._code import machine, script_version
from neurise.files import write_text
from neurise.laws import distance
from neurise.models._ddpd.chains import AdaptiveChain, PlannedChain, TogetherChain
from neurise.sampling import one_site, parallel

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))  # the true networks are the tests' own
import planning

DATA: dict[str, Callable[[], Any]] = {
    "Edwards–Anderson 2×2": lambda: datasets.edwards_anderson(side=2, seed=0),
    "Edwards–Anderson 3×3": lambda: datasets.edwards_anderson(side=3, seed=0),
    "Potts 2×2, 3 states": lambda: datasets.potts(side=2, states=3, seed=0),
}
DRAWS = 20_000


def total_variation(data: Any, sampler: str, steps: int) -> float:
    """TV between the data and the sampler's law, or 20,000 draws from it."""
    law = torch.from_numpy(np.asarray(data.pmf))
    objective, sites = planning.exact(law.numpy(), data.space), data.space.sites
    if sampler == "parallel":
        return distance(parallel.law(TogetherChain(objective.denoiser, steps, objective)), law)
    if sampler == "planned":
        return distance(one_site.law(PlannedChain(objective, steps, sites)), law)
    chain = AdaptiveChain(objective, steps, sites)
    generator = torch.Generator().manual_seed(0)
    parts = [one_site.sample(chain, 1000, generator=generator) for _ in range(DRAWS // 1000)]
    return distance(_counted(data.space.index(torch.cat(parts)), len(law)), law)


def floor(data: Any) -> float:
    """TV of as many exact draws, on average."""
    law, rng = np.asarray(data.pmf), np.random.default_rng(0)
    return float(np.mean([0.5 * np.abs(rng.multinomial(DRAWS, law) / DRAWS - law).sum() for _ in range(20)]))


def _counted(places: torch.Tensor, size: int) -> torch.Tensor:
    return torch.bincount(places, minlength=size) / len(places)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, nargs="+", default=[16, 64])
    parser.add_argument("--json", metavar="FILE", help="also write every figure")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    print(f"TV, perfect networks; torch {torch.__version__}, {platform.machine()}\n")
    print("| data | sampler | " + " | ".join(f"{steps} steps" for steps in arguments.steps) + " | floor |")
    print("|---|---|" + "---|" * (len(arguments.steps) + 1))
    results = []
    for name, make in DATA.items():
        data = make()
        for sampler in ("planned", "parallel", "adaptive"):
            values = [total_variation(data, sampler, steps) for steps in arguments.steps]
            least = floor(data) if sampler == "adaptive" else 0.0
            print(f"| {name} | {sampler} | " + " | ".join(f"{v:.4f}" for v in values) + f" | {least:.4f} |", flush=True)
            keys = {"data": name, "sampler": sampler, "floor": least}
            pairs = zip(arguments.steps, values, strict=True)
            results += [keys | {"steps": steps, "tv": value} for steps, value in pairs]
    if arguments.json:
        made = {
            "command": " ".join(["python benchmarks/ddpd_samplers.py", *sys.argv[1:]]),
            "code": script_version(__file__),
            "machine": machine("cpu"),
            "rows": results,
        }
        write_text(Path(arguments.json), json.dumps(made, indent=1, ensure_ascii=False))


if __name__ == "__main__":
    main()
