"""Fit and call small models over and over in one process, and see whether memory, open files or threads grow.

    python benchmarks/soak.py                          # 10,000 fits and 10⁶ calls
    python benchmarks/soak.py --fits 200 --calls 2000  # a short form, as the tests run it

A level is noted ten times on the way. The first tenth warms caches up; what the levels after it grow by is the finding.
"""

from __future__ import annotations

import argparse
import gc
import itertools
import json
import platform
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch

import neurise
from neurise.experiments._code import script_version

LEVELS = 10
KINDS: dict[str, dict[str, Any]] = {
    "NeurISE": {"width": 8, "depth": 1, "members": 1},
    "GGM": {"width": 8, "depth": 1, "members": 1, "cycles": 1},
    "D3PM": {"width": 8, "depth": 1, "timesteps": 4},
    "SEDD": {"width": 8, "depth": 1, "sampling_steps": 4},
    "DFM": {"width": 8, "depth": 1, "sampling_steps": 4},
    "MD4": {"width": 8, "depth": 1, "sampling_steps": 4},
    "UDLM": {"width": 8, "depth": 1, "sampling_steps": 4},
    "DDPD": {"width": 8, "depth": 1, "sampling_steps": 4},
    "Pairwise": {},
    "Independent": {},
    "Memorize": {},
}
"""The models, as small as they can be: what leaks is found by how often, not by how much."""
COMMITTEE_EVERY = 500
"""One fit in so many is a committee of two kinds, whose pairwise terms take longer than all else."""


def level() -> dict[str, int]:
    """Return the memory of this process in bytes, its open files and its threads."""
    status = Path("/proc/self/status").read_text().splitlines()
    resident = next(int(line.split()[1]) * 1024 for line in status if line.startswith("VmRSS"))
    return {
        "resident_bytes": resident,
        "files": len(list(Path("/proc/self/fd").iterdir())),
        "threads": len(list(Path("/proc/self/task").iterdir())),
        "python_threads": threading.active_count(),
        "objects": len(gc.get_objects()),
    }


def rows() -> np.ndarray:
    """Eight rows of four sites, in which every site varies."""
    return np.random.default_rng(0).permuted(np.tile([0, 1], (8, 2)), axis=1)


def fits() -> Iterator[Callable[[], Any]]:
    """Yield one fit after another: eight rows, two steps."""
    x = rows()
    for number, (name, params) in enumerate(itertools.cycle(KINDS.items())):
        own = {"members": 2, "width": 8, "depth": 1} if number % COMMITTEE_EVERY == COMMITTEE_EVERY - 1 else params
        kind = getattr(neurise, "NeurISE" if own is not params else name)
        yield lambda kind=kind, own=own, number=number: kind(**own).fit(x, max_steps=2, seed=number, verbose=False)


def calls() -> Iterator[Callable[[], Any]]:
    """Yield one call after another of everything that a fitted model can be asked."""
    x, asked = rows(), list[Callable[[], Any]]()
    for name, params in KINDS.items():
        model = getattr(neurise, name)(**params).fit(x, max_steps=2, verbose=False)
        asked.append(lambda model=model: model.sample(2, seed=0))
        asked += [model.summary, model.get_params]
        for question in (lambda model=model: model.log_prob(x), lambda model=model: model.conditional(x, 1)):
            try:
                question()
            except (AttributeError, NotImplementedError):  # a bound takes a hundred times as long, and is left out
                continue
            asked.append(question)
    return itertools.cycle(asked)


def soak(work: Iterator[Callable[[], Any]], times: int) -> dict[str, Any]:
    """Do a kind of work so many times; return the levels on the way and what the last is above the second."""
    levels, began = list[dict[str, Any]](), time.monotonic()
    for number in range(1, times + 1):
        next(work)()
        if number * LEVELS // times > (number - 1) * LEVELS // times:
            gc.collect()
            levels.append({"done": number, **level()})
    grown = {name: levels[-1][name] - levels[1][name] for name in levels[0] if name != "done"}
    return {"times": times, "seconds": round(time.monotonic() - began, 1), "grown": grown, "levels": levels}


def show(name: str, found: dict[str, Any]) -> None:
    """Print the levels as a table."""
    print(f"\n{name}: {found['times']:,} in {found['seconds']:,.0f} s")
    print(f"{'done':>10}  {'memory':>10}  {'files':>6}  {'threads':>8}  {'objects':>10}")
    for one in found["levels"]:
        memory = f"{one['resident_bytes'] / 1e6:.1f} MB"
        print(f"{one['done']:>10,}  {memory:>10}  {one['files']:>6}  {one['threads']:>8}  {one['objects']:>10,}")


def main() -> None:
    """Run both, print both, and write both."""
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--fits", type=int, default=10_000)
    options.add_argument("--calls", type=int, default=1_000_000)
    options.add_argument("--output", type=Path, help="write the levels there as JSON")
    chosen = options.parse_args()
    torch.set_num_threads(1)
    found = {"fits": soak(fits(), chosen.fits), "calls": soak(calls(), chosen.calls)}
    for name, part in found.items():
        show(name, part)
    if chosen.output is not None:
        machine = {"machine": platform.machine(), "python": platform.python_version(), "torch": torch.__version__}
        facts = {"rows": 8, "sites": 4, "steps": 2, "threads": 1, **machine, "code": script_version(__file__)["digest"]}
        chosen.output.write_text(json.dumps({"settings": facts, **found}, indent=1) + "\n")


if __name__ == "__main__":
    main()
