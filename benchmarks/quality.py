"""How good are the models? Every figure of the docs about quality comes from here.

    python benchmarks/quality.py ising --device cuda
    python benchmarks/quality.py not_pairwise --device cpu --sizes 1000 10000 --instances 0 1 2
    python benchmarks/quality.py open_lattice --device cpu --sizes 1000 10000 --instances 0 1 2
    python benchmarks/quality.py mnist --device cuda --seconds 110 --seeds 0 1 2
    python benchmarks/quality.py mnist_laptop --device cpu --seconds 120 --draws 100 --seeds 0 1 2
    python benchmarks/quality.py dynamic_mnist --device cuda --seconds 480
    python benchmarks/quality.py caltech --device cuda --seeds 0 1 2
    python benchmarks/quality.py dwave --device cuda --seconds 120 --seeds 0 1 2 --apart [--graph]
    python benchmarks/quality.py parents --device cpu --source advantage41_q263 --seeds 0 1 2
    python benchmarks/quality.py protein --device cuda --seeds 0 1 2
    python benchmarks/quality.py debd --device cuda --names nltcs plants
    python benchmarks/quality.py missing --names nltcs plants --seeds 0 1 2 --set 'network="masked"' --steps 1500
    python benchmarks/quality.py imputation --device cpu --names adult --rows 4000 --gone 0.1 --seeds 0 1 2
    python benchmarks/quality.py ghz --device cuda
    python benchmarks/quality.py ghz_small --device cpu --seconds 40 --seeds 0 1 2 3 4 5 6 7 8 9
    python benchmarks/quality.py small_spaces --device cpu --sizes 10 100 1000 --seeds 0 1 2 3 4 5 6 7 8 9 [--laws potts_2x2]
    python benchmarks/quality.py qubits --device cuda --seconds 480

A task is a file of ``benchmarks/quality_tasks``, whose first line says what it measures. Every fit is one constructor call,
``NeurISE(**settings)``; ``--set NAME=VALUE`` (JSON) changes the settings, and ``--steps`` or ``--seconds`` the length of the
training. Nothing is chosen on test rows. ``--json`` writes every single run, with the command, the machine and the code. With
``--apart`` each seed has a process of its own, all at once: on a GPU they share it, and their times are longer than alone.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import pkgutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import quality_tasks
import torch
from quality_tasks._fit import Row, excess

import neurise
from neurise.experiments._code import machine, script_version
from neurise.files import write_text

TASKS = sorted(name for _, name, _ in pkgutil.iter_modules(quality_tasks.__path__) if not name.startswith("_"))


def show(rows: list[Row], group: str | None) -> None:
    """Print a line for every group, with means and standard deviations over its runs."""
    names = [name for name in rows[0] if name not in (group, "seed")]
    print("| " + " | ".join([group or "task", *names]) + " |\n|" + "---|" * (len(names) + 1))
    for value in dict.fromkeys(row.get(group) for row in rows):
        here = [row for row in rows if row.get(group) == value]
        cells = []
        for name in names:
            numbers = np.array([row[name] for row in here], dtype=float)
            spread = f" ± {numbers.std(ddof=1):.2g}" if len(numbers) > 1 else ""
            cells.append(f"{numbers.mean():.4g}{spread}")
        print(f"| {value} | " + " | ".join(cells) + " |")
        if "memorising" in names:
            ratio, (worse, error) = sum(r["tv"] for r in here) / sum(r["memorising"] for r in here), excess(here)
            print(
                f"    over memorising: {ratio:.3f}; worse than it by {worse:+.4f} ± {error:.4f} (standard error, paired)"
            )


def arguments_of(words: list[str] | None = None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=TASKS)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0])
    parser.add_argument(
        "--instances", type=int, nargs="+", default=[0, 1, 2, 3, 4], help="of ising, not_pairwise, open_lattice"
    )
    parser.add_argument(
        "--sizes",
        type=int,
        nargs="+",
        default=[100, 1000, 10_000, 100_000],
        help="of ising, not_pairwise, open_lattice and small_spaces",
    )
    parser.add_argument("--laws", nargs="+", help="of small_spaces; default: all")
    parser.add_argument("--names", nargs="+", default=["nltcs", "plants", "jester", "accidents", "dna", "mushrooms"])
    parser.add_argument("--source", default="advantage41_q2084", help="of dwave and parents")
    parser.add_argument("--graph", action="store_true", help="of dwave and parents: tell the model the couplers")
    parser.add_argument("--draws", type=int, default=5000, help="of dwave, qubits and mnist_laptop")
    parser.add_argument("--copies", type=int, default=40, help="of dynamic_mnist: drawings of each digit")
    parser.add_argument("--gone", type=float, default=0.2, help="of missing and imputation: the share that is removed")
    parser.add_argument("--rows", type=int, default=4000, help="of imputation: how many rows of the table")
    parser.add_argument(
        "--methods", nargs="+", help="of imputation: neurise, forest, …; of mnist_laptop: NeurISE, GGM, …; default: all"
    )
    parser.add_argument("--cells", type=int, default=25, help="of qubits: the side of the Chimera graph")
    parser.add_argument("--reads", type=int, default=100_000, help="of qubits")
    parser.add_argument("--strength", type=float, default=0.6, help="of qubits: the largest coupling")
    parser.add_argument(
        "--set", action="append", default=[], metavar="NAME=VALUE", help="a setting of the model, as JSON"
    )
    parser.add_argument("--steps", type=int)
    parser.add_argument("--seconds", type=float)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--apart", action="store_true", help="a process for each seed, all at once")
    parser.add_argument("--json", metavar="FILE", help="also write every single run")
    arguments = parser.parse_args(words)
    arguments.settings = {name: json.loads(value) for name, _, value in (text.partition("=") for text in arguments.set)}
    arguments.budget = {"device": arguments.device, "max_steps": arguments.steps, "max_seconds": arguments.seconds}
    return arguments


def side_by_side(seeds: list[int], words: list[str]) -> Iterator[Row]:
    """Run a process for each seed, all at once, and return the rows of each as it ends; what it prints goes on."""
    shared = [word for word in words if word != "--apart"]
    threads = max(
        1, (os.cpu_count() or 1) // len(seeds)
    )  # threads that wait for a core spin, and take it from the others
    environment = {**os.environ, "OMP_NUM_THREADS": str(threads)}
    with tempfile.TemporaryDirectory() as folder:
        begun = []
        for seed in seeds:
            place = Path(folder) / f"{seed}.json"
            command = [
                sys.executable,
                __file__,
                *shared,
                "--seeds",
                str(seed),
                "--json",
                str(place),
            ]  # the last ones count
            begun.append((seed, place, subprocess.Popen(command, env=environment)))
        for seed, place, process in begun:
            if process.wait():
                print(f"seed {seed} ended with {process.returncode}", file=sys.stderr)
            if place.exists():
                yield from json.loads(place.read_text())["rows"]


def main() -> None:
    arguments = arguments_of()
    task: ModuleType = importlib.import_module(f"quality_tasks.{arguments.what}")
    made: dict[str, Any] = {
        "command": " ".join(["python benchmarks/quality.py", *sys.argv[1:]]),
        **({"how": "a process for each seed, all at once"} if arguments.apart else {}),
        "code": script_version(__file__),
        "machine": machine(arguments.device),
        "model": str(neurise.NeurISE().set_params(**arguments.settings)),
        "rows": list[Row](),
    }
    print(json.dumps({key: value for key, value in made.items() if key != "rows"}))
    rows = side_by_side(arguments.seeds, sys.argv[1:]) if arguments.apart else task.run(arguments)
    for row in rows:
        made["rows"].append(row)
        print(json.dumps(row), flush=True)
        if arguments.json:  # what is measured is kept, whatever comes after it
            write_text(Path(arguments.json), json.dumps(made, indent=1))
    show(made["rows"], getattr(task, "GROUP", None))


if __name__ == "__main__":
    main()
