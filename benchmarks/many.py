"""How much longer do many models take than one?

    python benchmarks/many.py --device cuda
    python benchmarks/many.py --device cpu --models 4 --side 3 --width 32 --steps 400

NeurISE on samples of a side × side Edwards–Anderson instance: one model by `fit`, then many by `fit_many`, each with a sample and a
seed of its own. Time is that of a step between the first evaluation and the last, evaluations included; the start (the capture
of a step on a GPU) is left out. Each measurement is repeated, and the spread is shown.
"""

from __future__ import annotations

import argparse
import platform
import statistics

import torch

import neurise
from neurise.bench.clock import steps_a_second


def milliseconds_a_step(model: neurise.Model) -> float:
    return 1e3 / steps_a_second(model.history_)


def shown(times: list[float]) -> str:
    return f"{statistics.median(times):.3f} ({min(times):.3f} … {max(times):.3f})"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--models", type=int, default=50)
    parser.add_argument("--side", type=int, default=5)
    parser.add_argument("--rows", type=int, default=10_000)
    parser.add_argument("--width", type=int, default=256)
    parser.add_argument("--depth", type=int, default=2)
    parser.add_argument("--batch", type=int, default=1024)
    parser.add_argument("--steps", type=int, default=4000, help="as many as the experiment has")
    parser.add_argument("--repeats", type=int, default=3)
    asked = parser.parse_args()
    data = neurise.datasets.edwards_anderson(asked.side, seed=0)
    samples = [data.sample(asked.rows, seed=seed) for seed in range(asked.models)]
    training = neurise.Training(batch_size=asked.batch, patience=asked.steps, learning_rate=2e-3)
    form = {"loss": neurise.NeurISE().loss, "chain__hide_noised": True}  # but for these, the paper's
    size = {"width": asked.width, "depth": asked.depth, "training": training, **form}
    run = {"device": asked.device, "max_steps": asked.steps, "verbose": False}
    machine = (
        torch.cuda.get_device_name()
        if asked.device == "cuda"
        else f"{platform.machine()}, {torch.get_num_threads()} threads"
    )
    print(f"{machine}, torch {torch.__version__}, {data.name}, {size}\n")
    alone, together, scores = [], [], []
    for repeat in range(asked.repeats):
        one = neurise.NeurISE.paper(**size).fit(samples[0], seed=repeat, **run)
        many = neurise.fit_many(
            neurise.NeurISE.paper(**size), samples, seeds=range(repeat, repeat + asked.models), **run
        )
        alone.append(milliseconds_a_step(one))
        together.append(milliseconds_a_step(many[0]))
        scores.append((one, many))
    ratio = statistics.median(together) / statistics.median(alone)
    best = [min(record["validation"] for record in model.history_) for model in scores[0][1]]
    single = min(record["validation"] for record in scores[0][0].history_)
    print("| models | ms per step: median (least … greatest) | validation, nats per site |\n|---|---|---|")
    print(f"| 1 | {shown(alone)} | {single:.4f} |")
    print(f"| {asked.models} | {shown(together)} | {statistics.mean(best):.4f} ± {statistics.pstdev(best):.4f} |")
    print(f"\n{asked.models} models take {ratio:.2f} times as long as one")


if __name__ == "__main__":
    main()
