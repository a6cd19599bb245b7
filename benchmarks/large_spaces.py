"""How long do a million samples and the exact law of 2^25 states take?

    python benchmarks/large_spaces.py --device cuda
    python benchmarks/large_spaces.py --device cpu --hard-only      # minutes on two cores

NeurISE with its default network on a side × side Edwards–Anderson instance; it is trained for a moment only, because what it has
learnt does not change the times.
"""

from __future__ import annotations

import argparse
import platform
import resource
import time

import torch

import neurise


def timed(what: str, work: object, device: str) -> None:
    began = time.perf_counter()
    result = work()  # type: ignore[operator]
    if device == "cuda":
        torch.cuda.synchronize()
        memory = f"{torch.cuda.max_memory_allocated() / 2**30:.1f} GiB on the device"
    else:
        memory = f"{resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3:.0f} MB in all"
    print(f"| {what} | {time.perf_counter() - began:.2f} | {memory} | {result} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--side", type=int, default=5)
    parser.add_argument("--samples", type=int, default=10**6)
    parser.add_argument("--hard-only", action="store_true", help="leave out soft noise, which costs a pass per step")
    arguments = parser.parse_args()
    device = arguments.device
    data = neurise.datasets.edwards_anderson(arguments.side, seed=0)
    rows = data.sample(10_000, seed=0)
    machine = (
        torch.cuda.get_device_name() if device == "cuda" else f"{platform.machine()}, {torch.get_num_threads()} threads"
    )
    print(f"{machine}, torch {torch.__version__}, {data.name}\n")
    print("| task | seconds | peak memory | |\n|---|---|---|---|")
    network = {"width": 256, "depth": 2, "members": 1, "architecture": neurise.Architecture(pairwise=False)}
    network["training"] = neurise.Training(batch_size=1024)
    hard = neurise.NeurISE(**network).fit(rows, device=device, max_steps=50, verbose=False)
    timed(f"{arguments.samples:,} samples", lambda: hard.sample(arguments.samples, seed=0).shape, device)
    timed("exact law, hard noise", lambda: f"sums to {float(neurise.exact.law(hard).sum()):.12f}", device)
    if arguments.hard_only:
        return
    timed("the theorem's bound, hard noise", lambda: f"TV {neurise.exact.bound(hard, data.pmf).tv:.3f}", device)
    soft = neurise.NeurISE(keep_prob=0.3, cycles=2, **network).fit(rows, device=device, max_steps=50, verbose=False)
    timed("exact law, soft noise, 2 cycles", lambda: f"sums to {float(neurise.exact.law(soft).sum()):.12f}", device)


if __name__ == "__main__":
    main()
