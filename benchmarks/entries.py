"""Count the files that a reader passes through on the way of a row: the first call of each function, in order.

    python benchmarks/entries.py            # default NeurISE: fit, sample, log_prob
    python benchmarks/entries.py --files    # and the way itself

``files`` is the number of files entered, ``re-entries`` how often the way comes back to a file that it has left:
changes of file + 1 − different files. Counted in the second ``fit`` of a process, so that imports are done, on
200 × 6 random bits with ``max_steps=3`` and one thread.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable
from itertools import groupby
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import numpy as np
import torch

import neurise

SOURCE = Path(neurise.__file__).parent


def way_of(call: Callable[[], Any]) -> list[str]:
    """Return the file of the first call of each function of the library, in the order of these calls."""
    seen: set[CodeType] = set()
    way: list[str] = []

    def note(frame: FrameType, event: str, _: Any) -> None:
        code = frame.f_code
        if event == "call" and code not in seen and code.co_filename.startswith(str(SOURCE)):
            seen.add(code)
            way.append(str(Path(code.co_filename).relative_to(SOURCE)))

    sys.setprofile(note)
    try:
        call()
    finally:
        sys.setprofile(None)
    return way


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--files", action="store_true", help="print the way, file by file")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    X = np.random.default_rng(0).integers(0, 2, (200, 6))
    model = neurise.NeurISE()
    options = {"max_steps": 3, "device": "cpu", "verbose": False}
    model.fit(X, **options), model.sample(5, seed=0), model.log_prob(X)
    found = {}
    calls = {
        "fit": lambda: model.fit(X, **options),
        "sample": lambda: model.sample(5, seed=0),
        "log_prob": lambda: model.log_prob(X),
    }
    for name, call in calls.items():
        way = [file for file, _ in groupby(way_of(call))]
        found[name] = {"files": len(set(way)), "re-entries": len(way) - len(set(way))}
        if arguments.files:
            print(name, *way, sep="\n    ")
    print(json.dumps(found, indent=2))


if __name__ == "__main__":
    main()
