"""Many fits and calls in one process: a short form of ``benchmarks/soak.py``."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

SOAK = Path(__file__).parent.parent / "benchmarks" / "soak.py"
FITS, CALLS = 240, 1200
PER_CALL = 10_000
"""Bytes that a fit or a call may leave behind: the tensors, schema and record of one fitted model take more than that."""
ARENA = 8e6
"""Bytes by which the memory of a process may move whatever it does: allocators take and give back in pieces."""


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="only Linux says what a process has open")
def test_nothing_grows(tmp_path: Path) -> None:
    output = tmp_path / "soak.json"
    command = [sys.executable, str(SOAK), "--fits", str(FITS), "--calls", str(CALLS), "--output", str(output)]
    subprocess.run(command, check=True, capture_output=True, text=True)
    found = json.loads(output.read_text())
    for name, times in (("fits", FITS), ("calls", CALLS)):
        grown = found[name]["grown"]
        assert grown["files"] == grown["threads"] == grown["python_threads"] == 0, (name, grown)
        # Between the levels that are compared lie eight tenths of the work. A leak of one object per fit would be as many.
        assert grown["objects"] < 0.4 * times, (name, grown)
        assert grown["resident_bytes"] < ARENA + PER_CALL * times, (name, grown)
