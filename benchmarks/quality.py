"""How good are the models? Every figure of the docs about quality comes from here.

    python benchmarks/quality.py ising --device cuda --workers 9

``ising``: exact total variation of NeurISE on 5×5 Edwards–Anderson `paper` instances, 10^4 samples, beside the TV of
memorising the same samples. One constructor call for all instances; every loss; several seeds of the training.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import platform
import statistics
import time
from concurrent.futures import ProcessPoolExecutor
from itertools import product
from typing import Any

import torch

import neurise
from neurise.laws import distance

LOSSES = ["screening", "weighted_screening(0.5)", "cross_entropy"]


def ising_cell(cell: tuple[int, str, int], rows: int, depth: int, device: str) -> dict[str, Any]:
    instance, loss, seed = cell
    torch.set_num_threads(1)
    data = neurise.datasets.edwards_anderson(side=5, seed=instance)
    samples = data.sample(rows, seed=1000 + instance)
    began = time.perf_counter()
    model = neurise.NeurISE(depth=depth, loss=loss).fit(samples, seed=seed, device=device, verbose=False)
    seconds = time.perf_counter() - began
    pmf = torch.from_numpy(data.pmf).to(device)
    return {
        "instance": instance,
        "loss": loss,
        "seed": seed,
        "tv": distance(neurise.exact.law(model), pmf),
        "memorising": neurise.metrics.total_variation(samples, data.pmf, alphabet=[-1, 1]),
        "seconds": seconds,
        "stopped": model.stopped_,
    }


def ising(arguments: argparse.Namespace) -> list[dict[str, Any]]:
    cells = list(product(arguments.instances, arguments.losses, arguments.seeds))
    shared = [[value] * len(cells) for value in (arguments.rows, arguments.depth, arguments.device)]
    if arguments.workers == 1:
        return [ising_cell(*call) for call in zip(cells, *shared, strict=True)]
    with ProcessPoolExecutor(arguments.workers, mp_context=multiprocessing.get_context("spawn")) as pool:
        return list(pool.map(ising_cell, cells, *shared))


def show(results: list[dict[str, Any]]) -> None:
    losses = list(dict.fromkeys(row["loss"] for row in results))
    print("| instance | memorising | " + " | ".join(losses) + " |")
    print("|---|---|" + "---|" * len(losses))
    for instance in sorted({row["instance"] for row in results}):
        here = [row for row in results if row["instance"] == instance]
        cells = []
        for loss in losses:
            values = [row["tv"] for row in here if row["loss"] == loss]
            spread = f" ± {statistics.stdev(values):.4f}" if len(values) > 1 else ""
            cells.append(f"{statistics.mean(values):.4f}{spread}")
        print(f"| seed {instance} | {here[0]['memorising']:.4f} | " + " | ".join(cells) + " |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["ising"])
    parser.add_argument("--instances", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--losses", nargs="+", default=LOSSES)
    parser.add_argument("--rows", type=int, default=10_000)
    parser.add_argument("--depth", type=int, default=3)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--json", metavar="FILE", help="also write every single run")
    arguments = parser.parse_args()
    machine = torch.cuda.get_device_name() if arguments.device.startswith("cuda") else platform.machine()
    print(f"neurise {neurise.__version__}, torch {torch.__version__}, {machine}")
    print(f"5×5, {arguments.rows} samples, depth {arguments.depth}")
    results = ising(arguments)
    show(results)
    if arguments.json:
        with open(arguments.json, "w", encoding="utf-8") as file:
            json.dump(results, file, indent=1)


if __name__ == "__main__":
    main()
