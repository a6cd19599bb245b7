"""``kill -9`` in the middle of training, for real."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from neurise.training.state import CHECKPOINT

COMMAND = [sys.executable, "-m", "neurise", "train", "rows.npy"]
COMMAND += ["--width", "8", "--depth", "1", "--batch-size", "64", "--max-steps", "1500", "--set", "patience=1000"]


@pytest.mark.slow
def test_resume_after_kill_gives_the_same_bits(tmp_path: Path) -> None:
    np.save(tmp_path / "rows.npy", np.random.default_rng(0).choice([-1, 1], (200, 4)))
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}

    def finish(*words: str) -> None:
        subprocess.run([*COMMAND, *words], cwd=tmp_path, env=environment, check=True, capture_output=True, timeout=300)

    state = tmp_path / "killed" / CHECKPOINT
    process = subprocess.Popen([*COMMAND, "-o", "killed"], cwd=tmp_path, env=environment, stdout=subprocess.DEVNULL)
    deadline = time.monotonic() + 120
    while not state.exists() and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.005)
    process.kill()
    assert process.wait() == -signal.SIGKILL
    assert not (tmp_path / "killed/config.json").exists()

    finish("-o", "killed", "--resume")
    finish("-o", "straight")
    assert not state.exists()
    killed, straight = (tmp_path / name / "model.safetensors" for name in ("killed", "straight"))
    assert killed.read_bytes() == straight.read_bytes()
