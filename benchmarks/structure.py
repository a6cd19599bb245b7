"""Does a fitted model give back the couplings of a spin glass? The table of docs/guide/structure.md.

    python benchmarks/structure.py

4×4 Edwards–Anderson instances, 10⁵ samples, one constructor call for all; the graph by the default rule.
"""

from __future__ import annotations

import argparse
import platform
import time
from itertools import product

import torch

import neurise
from neurise import structure


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--instances", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=0, help="of the training")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    arguments = parser.parse_args()
    training = neurise.Training(batch_size=16384, learning_rate=1e-2, patience=1000)
    one = neurise.NeurISE(width=64, depth=2, members=1, steps=1500, training=training)
    models = [one.set_params(architecture__pairwise=False), neurise.Pairwise()]
    print(f"neurise {neurise.__version__}, torch {torch.__version__}, {platform.machine()}, {models}")
    print("| instance | model | threshold | RMS error | missed, false, wrong sign | training s | recovery s |")
    print("|---|---|---|---|---|---|---|")
    for model, instance in product(models, arguments.instances):
        data = neurise.datasets.edwards_anderson(side=4, seed=instance)
        rows = data.sample(arguments.rows, seed=instance)
        began = time.perf_counter()
        model.fit(rows, seed=arguments.seed, device=arguments.device, verbose=False)
        trained = time.perf_counter()
        found = structure.recover(model, rows, verbose=False)
        took = time.perf_counter() - trained
        result = structure.compare(found, data)
        wrong = f"{len(result.missed)}, {len(result.false)}, {len(result.wrong_signs)}"
        threshold = "–" if found.threshold is None else f"{found.threshold:.2f}"
        facts = [threshold, f"{result.rms:.3f}", wrong, f"{trained - began:.0f}", f"{took:.1f}"]
        print(f"| seed {instance} | {type(model).__name__} | {' | '.join(facts)} |", flush=True)


if __name__ == "__main__":
    main()
