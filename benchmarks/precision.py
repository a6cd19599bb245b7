"""What does bfloat16 in training cost?

    python benchmarks/precision.py

`precision="bfloat16"` acts on a GPU. Its arithmetic is imitated on a CPU here: factors of a product are rounded the same way, and
sums are float32. So the cost in accuracy can be measured anywhere: the exact total variation of NeurISE's law on Edwards–Anderson
instances, trained with float32 and with bfloat16 from the same seeds on the same rows.
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any
from unittest.mock import patch

import torch

import neurise
from neurise.laws import distance
from neurise.training import step


@contextmanager
def shortened(precision: str) -> Iterator[None]:
    with torch.autocast("cpu", torch.bfloat16, enabled=precision == "bfloat16", cache_enabled=False):
        yield


def total_variation(precision: str, size: int, instance: int, seed: int, settings: dict[str, Any], steps: int) -> float:
    data = neurise.datasets.edwards_anderson(side=4, seed=instance)
    with patch.object(step, "nullcontext", partial(shortened, precision)):
        model = neurise.NeurISE().set_params(training__precision=precision, **settings)
        model.fit(data.sample(size, seed=1000 + instance), seed=seed, max_steps=steps, device="cpu", verbose=False)
    return distance(neurise.exact.law(model), torch.from_numpy(data.pmf))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", type=int, nargs="+", default=[100, 1000, 10_000])
    parser.add_argument("--instances", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1])
    parser.add_argument("--steps", type=int, default=1500)
    asked = parser.parse_args()
    settings = {"members": 1, "architecture__pairwise": False, "width": 64, "depth": 2}
    settings |= {"training__batch_size": 512, "training__learning_rate": 2e-3}
    print(f"torch {torch.__version__}, 4×4 instances {asked.instances}, {asked.steps} steps, {settings}\n")
    print("| N | float32 | bfloat16 | bfloat16 − float32, in pairs |\n|---|---|---|---|")
    for size in asked.sizes:
        cells = [(instance, seed) for instance in asked.instances for seed in asked.seeds]
        found = {
            precision: [total_variation(precision, size, *cell, settings, asked.steps) for cell in cells]
            for precision in ("float32", "bfloat16")
        }
        gaps = [short - full for full, short in zip(found["float32"], found["bfloat16"], strict=True)]
        error = statistics.stdev(gaps) / len(gaps) ** 0.5
        means = " | ".join(f"{statistics.mean(values):.4f}" for values in found.values())
        print(f"| {size:,} | {means} | {statistics.mean(gaps):+.4f} ± {error:.4f} |", flush=True)


if __name__ == "__main__":
    main()
