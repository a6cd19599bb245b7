"""Fit from a folder of Parquet files that is larger than the memory it may take, beside rows in memory.

PYTHONPATH=src python benchmarks/stored_rows.py --rows 50_000_000 --sites 20 --json stored_rows.json

The files are written to a temporary folder in parts of a million rows, and removed in the end. Every fit runs in a process of its
own, whose largest resident memory is measured. Rows in memory are fewer: the speed of a step hardly depends on their number.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch

import neurise
from neurise.experiments._code import script_version

PART = 1_000_000
STATES = 4
IN_MEMORY = 5_000_000
OFTEN = 0.7
"""How often a site is the one before it."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=50_000_000)
    parser.add_argument("--sites", type=int, default=20)
    parser.add_argument("--width", type=int, nargs="+", default=[64, 512])
    parser.add_argument("--steps", type=int, nargs="+", default=[8000, 400], help="one number per width")
    parser.add_argument("--folder", help="where the files are, or are to be written (kept then)")
    parser.add_argument("--json", metavar="FILE")
    parser.add_argument("--one", nargs=3, metavar=("SOURCE", "WIDTH", "STEPS"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.one:
        print(json.dumps(one(arguments.one[0], int(arguments.one[1]), int(arguments.one[2]), arguments.sites)))
        return
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(arguments.folder or scratch)
        began = time.perf_counter()
        if not any(folder.glob("*.parquet")):
            write(folder, arguments.rows, arguments.sites)
        found: dict[str, Any] = {
            "command": command(arguments),
            "machine": f"{platform.machine()}, {os.cpu_count()} cores",
            "torch": torch.__version__,
            "code": script_version(__file__)["digest"],
            "rows": arguments.rows,
            "sites": arguments.sites,
            "files": len(list(folder.glob("*.parquet"))),
            "bytes": sum(path.stat().st_size for path in folder.glob("*.parquet")),
            "write_seconds": round(time.perf_counter() - began, 1),
            "fits": [],
        }
        for width, steps in zip(arguments.width, arguments.steps, strict=True):
            for source in (str(folder), "memory"):
                call = [
                    sys.executable,
                    __file__,
                    "--sites",
                    str(arguments.sites),
                    "--one",
                    source,
                    str(width),
                    str(steps),
                ]
                done = subprocess.run(call, capture_output=True, text=True, check=True)
                found["fits"].append(json.loads(done.stdout.splitlines()[-1]))
                print(found["fits"][-1], flush=True)
    if arguments.json:
        Path(arguments.json).write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


def command(arguments: Any) -> str:
    """Write the command without the places of files."""
    lists = " ".join(f"--{name} {' '.join(map(str, getattr(arguments, name)))}" for name in ("width", "steps"))
    return f"python benchmarks/stored_rows.py --rows {arguments.rows} --sites {arguments.sites} {lists}"


def drawn(n: int, sites: int, seed: int) -> np.ndarray:
    """Draw a Markov chain along the sites, whose neighbours are equal three times in four."""
    rng = np.random.default_rng(seed)
    x = rng.integers(0, STATES, (sites, n), dtype=np.uint8)
    for k in range(1, sites):
        same = rng.random(n, dtype=np.float32) < OFTEN
        x[k][same] = x[k - 1][same]
    return x


def write(folder: Path, rows: int, sites: int) -> None:
    """Write the files."""
    import pyarrow as pa
    from pyarrow import parquet

    for number, start in enumerate(range(0, rows, PART)):
        x = drawn(min(PART, rows - start), sites, number)
        table = pa.table({f"s{k}": column for k, column in enumerate(x)})
        parquet.write_table(table, folder / f"part-{number:04}.parquet", row_group_size=PART // 4)


def one(source: str, width: int, steps: int, sites: int) -> dict[str, Any]:
    """Fit once, and say how long it took and how much memory."""
    stored = source != "memory"
    rows: Any = neurise.open_rows(source) if stored else np.ascontiguousarray(drawn(IN_MEMORY, sites, 0).T)
    seen: list[tuple[int, float]] = []

    def watch(step: int, seconds: float, losses: Any, model: Any) -> None:
        seen.append((step, time.perf_counter()))

    model = neurise.NeurISE(width=width, members=1)
    model.set_params(training__batch_size=1024, training__patience=10**6)
    began = time.perf_counter()
    model.fit(rows, max_steps=steps, verbose=False, callback=watch)
    whole = time.perf_counter() - began
    (first, start), (last, end) = seen[0], seen[-1]
    test = np.ascontiguousarray(drawn(20_000, sites, 10**6).T)
    same = OFTEN + (1 - OFTEN) / STATES
    bits = np.where(np.diff(test.astype(int)) == 0, np.log(same), np.log((1 - same) / (STATES - 1)))
    return {
        "source": "folder" if stored else "memory",
        "rows": len(rows),
        "width": width,
        "steps": last,
        "batch_size": 1024,
        "seconds": round(whole, 2),
        "seconds_until_first_evaluation": round(start - began, 2),
        "rows_per_second": round((last - first) * 1024 / (end - start)),
        "rows_per_second_with_all_reading": round(last * 1024 / whole),
        "peak_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
        "nats_per_row_above_the_law": round(float((bits.sum(1) - np.log(STATES)).mean() - model.score(test)), 5),
    }


if __name__ == "__main__":
    main()
