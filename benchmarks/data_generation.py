"""How long does it take to make data, and how much memory?

    python benchmarks/data_generation.py                    # everything
    python benchmarks/data_generation.py "5×5" potts        # what has one of these words in its name
    python benchmarks/data_generation.py --repeats 3 --json benchmarks/measured/data_generation.json

Each task runs in a process of its own: the time is that of the task alone, without starting Python and importing, and the
memory is the largest that the process ever held, with and without what Python and torch take before the task begins.

**Adding a task.** Write a function that makes the data and returns a few words about the result, and add a line to TASKS.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from neurise import datasets
from neurise.experiments._code import machine, script_version
from neurise.files import write_text


def pmf(side: int) -> str:
    data = datasets.edwards_anderson(side, seed=0)
    return f"{len(data.pmf):,} states, sum − 1 = {data.pmf.sum() - 1:.1g}"


def sample(make: Callable[[], Any], n: int) -> str:
    data = make()
    rows = data.sample(n, seed=0)
    told = f"{len(rows):,} rows by {data.info['sampler']}"
    if data.info["log_z"] is not None:
        return f"{told}, log Z = {data.info['log_z']:.4f}"
    run = data.info["tempering"]
    verdict = "well mixed" if run["mixed"] else "not well mixed: " + "; ".join(run["problems"])
    return f"{told}, worth {run['effective_rows']:,.0f}, {verdict}"


def ghz(qubits: int, n: int) -> str:
    rows = datasets.ghz(qubits).sample(n, seed=0)
    return f"{len(rows):,} rows of {rows.shape[1]} qubits"


def load(make: Callable[[], Any]) -> str:
    data = make()
    return f"{len(data.train):,} rows of {data.space.sites:,} sites, {len(data.test) if data.test is not None else 0:,} for testing"


def simulate(qubits: int, reads: int) -> str:
    data = datasets.dwave(qubits=qubits, reads=reads, workers=2)
    return f"{reads} anneals of {data.space.sites:,} qubits, mean energy {data.info['energies'].mean():.1f}"


TASKS: dict[str, Callable[[], str]] = {
    "Edwards–Anderson 5×5, pmf": lambda: pmf(5),
    "Edwards–Anderson 5×5, pmf and 10⁵ rows": lambda: sample(lambda: datasets.edwards_anderson(5), 100_000),
    "Edwards–Anderson 10×10, 10⁴ rows": lambda: sample(lambda: datasets.edwards_anderson(10), 10_000),
    "Edwards–Anderson 10×10, 10⁵ rows": lambda: sample(lambda: datasets.edwards_anderson(10), 100_000),
    "Edwards–Anderson 16×16, 10³ rows": lambda: sample(lambda: datasets.edwards_anderson(16), 1_000),
    "Edwards–Anderson 32×32, 10³ rows": lambda: sample(lambda: datasets.edwards_anderson(32), 1_000),
    "Potts 3×3, 3 states, 10⁵ rows": lambda: sample(lambda: datasets.potts(3, 3), 100_000),
    "Potts 6×6, 3 states, 10⁴ rows": lambda: sample(lambda: datasets.potts(6, 3), 10_000),
    "GHZ, 20 qubits, 10⁵ rows": lambda: ghz(20, 100_000),
    "MNIST, read from files": lambda: load(datasets.mnist),
    "Advantage reads q2084, read and energies checked": lambda: load(lambda: datasets.dwave("advantage41_q2084")),
    "annealer of 2000 qubits, simulated, 100 reads": lambda: simulate(2000, 100),
}


def measure(name: str) -> dict[str, Any]:
    """Run one task here."""
    before = peak()
    began, used = time.perf_counter(), time.process_time()
    note = TASKS[name]()
    return {
        "seconds": time.perf_counter() - began,
        "cpu_seconds": time.process_time() - used,
        "peak_mb": peak(),
        "own_mb": peak() - before,
        "note": note,
    }


def peak() -> float:
    unit = 1 if sys.platform == "darwin" else 1024  # kilobytes everywhere but there
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 1e6


def measure_apart(name: str, repeats: int) -> dict[str, Any]:
    """Run one task in processes of its own, and take the median of its times."""
    runs = []
    for _ in range(repeats):
        done = subprocess.run([sys.executable, __file__, "--here", name], capture_output=True, text=True, check=False)
        if done.returncode:
            return {"task": name, "error": done.stderr.strip().splitlines()[-1]}
        runs.append(json.loads(done.stdout))
    middle = {
        key: statistics.median(run[key] for run in runs) for key in ("seconds", "cpu_seconds", "peak_mb", "own_mb")
    }
    return {"task": name, **middle, "slowest": max(run["seconds"] for run in runs), "note": runs[0]["note"]}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("words", nargs="*", help="run what has one of these words in its name")
    parser.add_argument("--repeats", type=int, default=1)
    parser.add_argument("--json", metavar="FILE", help="also write every figure")
    parser.add_argument("--here", metavar="TASK", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.here:
        print(json.dumps(measure(arguments.here)))
        return
    wanted = [name for name in TASKS if not arguments.words or any(word in name for word in arguments.words)]
    if not wanted:
        raise SystemExit(f"no task has {' or '.join(arguments.words)} in its name; there are: {'; '.join(TASKS)}")
    made: dict[str, Any] = {
        "command": " ".join(["python benchmarks/data_generation.py", *sys.argv[1:]]),
        "code": script_version(__file__),
        "machine": machine("cpu"),
        "rows": [],
    }
    print(
        f"{platform.machine()}, {os.cpu_count()} cores, {torch.get_num_threads()} threads, torch {torch.__version__}\n"
    )
    print("| task | seconds | CPU seconds | peak MB | above start MB | |")
    print("|---|---|---|---|---|---|")
    for name in wanted:
        row = measure_apart(name, arguments.repeats)
        if "error" in row:
            print(f"| {name} | failed | | | | {row['error']} |", flush=True)
            continue
        times = f"{row['seconds']:.2f} | {row['cpu_seconds']:.2f}"
        print(f"| {name} | {times} | {row['peak_mb']:.0f} | {row['own_mb']:.0f} | {row['note']} |", flush=True)
        made["rows"].append(row)
        if arguments.json:
            write_text(Path(arguments.json), json.dumps(made, indent=1, ensure_ascii=False))


if __name__ == "__main__":
    main()
