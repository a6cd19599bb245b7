"""Does a fitted model give back the couplings of a spin glass? The table of docs/guide/structure.md.

    python benchmarks/structure.py --json benchmarks/measured/structure.json

4×4 Edwards–Anderson instances, 10⁵ samples, one constructor call for all; the graph by the default rule.
"""

from __future__ import annotations

import argparse
import json
import platform
import sys
import time
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import torch

import neurise
from neurise import structure
from neurise.experiments._code import machine, script_version
from neurise.files import write_text


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--instances", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=0, help="of the training")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--json", metavar="FILE", help="also write every figure")
    arguments = parser.parse_args()
    made: dict[str, Any] = {
        "command": " ".join(["python benchmarks/structure.py", *sys.argv[1:]]),
        "code": script_version(__file__),
        "machine": machine(arguments.device),
        "rows": [],
    }
    training = neurise.Training(batch_size=16384, learning_rate=1e-2, patience=1000)
    one = neurise.NeurISE(width=64, depth=2, members=1, steps=1500, training=training)
    models = [one.set_params(architecture__pairwise=False), neurise.Pairwise()]
    print(f"neurise {neurise.__version__}, torch {torch.__version__}, {platform.machine()}, {models}")
    print(
        "| model | instance | distinct rows | threshold | RMS error | missed | false | wrong sign | training s | recovery s |"
    )
    print("|" + "---|" * 10)
    for model, instance in product(models, arguments.instances):
        data = neurise.datasets.edwards_anderson(side=4, seed=instance)
        rows = data.sample(arguments.rows, seed=instance)
        began = time.process_time()
        model.fit(rows, seed=arguments.seed, device=arguments.device, verbose=False)
        trained = time.process_time()
        found = structure.recover(model, rows, verbose=False)
        result = structure.compare(found, data)
        facts = {
            "model": type(model).__name__,
            "instance": instance,
            "distinct": len(np.unique(rows, axis=0)),
            "threshold": found.threshold,
            "rms": result.rms,
            "missed": len(result.missed),
            "false": len(result.false),
            "wrong_signs": len(result.wrong_signs),
            "training_cpu_seconds": trained - began,
            "recovery_cpu_seconds": time.process_time() - trained,
        }
        made["rows"].append(facts)
        print("| " + " | ".join(map(str, facts.values())) + " |", flush=True)
        if arguments.json:
            write_text(Path(arguments.json), json.dumps(made, indent=1))


if __name__ == "__main__":
    main()
