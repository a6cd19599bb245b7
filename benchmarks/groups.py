"""How much faster are the cells of an experiment when they are trained as a group?

    python benchmarks/groups.py --device cuda
    python benchmarks/groups.py --device cpu --scale smoke --methods neurise d3pm

The cells of `ising_curves` with one number of rows differ in seed and instance alone, so they may be trained as one batched
computation. Timed as the runner trains them: a few one by one, after a first that loads what a process loads, then all of
them together.
"""

from __future__ import annotations

import argparse
import platform
import statistics
import time

import torch

from neurise import discovery
from neurise.experiments import grid
from neurise.experiments._measure import train, train_together


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--scale", default="paper")
    parser.add_argument("--rows", default="1000")
    parser.add_argument("--methods", nargs="+", default=["neurise"])
    parser.add_argument("--singles", type=int, default=2, help="cells that are timed one by one")
    asked = parser.parse_args()
    experiment = discovery.find("neurise.experiments", "ising_curves")()
    machine = torch.cuda.get_device_name() if asked.device == "cuda" else platform.machine()
    print(f"{machine}, torch {torch.__version__}, {asked.scale} scale, N = {asked.rows}\n")
    print("| method | cells | one by itself, s | all as a group, s | speed-up |\n|---|---|---|---|---|")
    for method in asked.methods:
        units = grid.plan(experiment, asked.scale, methods=[method], only={"rows": [asked.rows]}, grouped=True)
        cells = units[0].cells
        run = {"device": asked.device, "max_steps": int(cells[0].parameters["steps"])}
        alone = []
        for cell in [cells[0], *cells[: asked.singles]]:
            _, rows, model = experiment._prepared(cell)
            alone.append(train(model, rows, seed=cell.seed, **run))
        _, sets, models = zip(*(experiment._prepared(cell) for cell in cells), strict=True)
        began = time.perf_counter()
        train_together(models, sets, [cell.seed for cell in cells], **run)
        together = time.perf_counter() - began
        one = statistics.mean(alone[1:])
        print(
            f"| {method} | {len(cells)} | {one:.2f} | {together:.2f} | {len(cells) * one / together:.1f} |", flush=True
        )


if __name__ == "__main__":
    main()
