"""What ``fit`` takes of memory while it works, beyond its data."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

MOST = 250e6
"""Bytes above the level before ``fit``, for a million rows of fifty one-byte symbols."""
CODE = """
import numpy as np
import neurise

def level(name):
    return next(int(line.split()[1]) * 1024 for line in open("/proc/self/status") if line.startswith(name))

X = np.random.default_rng(0).integers(0, 2, (1_000_000, 50), dtype=np.int8)
neurise.NeurISE(width=64).fit(X[:64], max_steps=1, verbose=False)  # what the first fit loads is no part of it
open("/proc/self/clear_refs", "w").write("5")  # forget the highest level so far
before = level("VmRSS")
neurise.NeurISE(width=64).fit(X, max_steps=2, verbose=False)
print(level("VmHWM") - before)
"""


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="only Linux says what a process has taken")
def test_a_million_rows_are_not_copied_many_times() -> None:
    run = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True, check=True)
    assert int(run.stdout) < MOST
