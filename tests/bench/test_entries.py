"""How many files a reader passes through on the way of a row: what the benchmark counts stays within its limits."""

import json
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
LIMITS = {"fit": (25, 40), "sample": (12, 14), "log_prob": (10, 8)}


def test_the_way_of_a_row_is_short() -> None:
    script = ROOT / "benchmarks" / "entries.py"
    environment = {**os.environ, "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"}
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, check=True, env=environment)
    for name, found in json.loads(done.stdout).items():
        assert (found["files"] <= LIMITS[name][0], found["re-entries"] <= LIMITS[name][1]) == (True, True), (
            name,
            found,
        )
