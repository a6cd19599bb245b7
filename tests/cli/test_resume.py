"""``kill -9`` in the middle of training, for real."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from neurise.training.state import CHECKPOINT

WORDS = ["train", "rows.npy", "--width", "8", "--depth", "1", "--batch-size", "64", "--max-steps", "300"]
WORDS += ["--set", "members=1", "--set", "architecture__pairwise=false"]

KILLED = """
import os, pathlib, signal, sys

import pytest
from steps import replace_steps

from neurise.cli import main
from neurise.training import loop

loop.CHECKPOINT_SHARE = 1e9  # a state is written whatever it costs, so that no clock has a say
state, after = pathlib.Path(sys.argv.pop(1)), []

def die_later(_, step):
    after.extend([1] * state.exists())
    if len(after) > 5:
        os.kill(os.getpid(), signal.SIGKILL)
    return step()

replace_steps(pytest.MonkeyPatch(), die_later)
main()
"""
"""Trains as the command line does, and is killed five steps after the first state was written."""


@pytest.mark.slow
def test_resume_after_kill_gives_the_same_bits(tmp_path: Path) -> None:
    np.save(tmp_path / "rows.npy", np.random.default_rng(0).choice([-1, 1], (200, 4)))
    paths = os.pathsep.join([str(Path(__file__).parents[1]), os.environ.get("PYTHONPATH", "")])
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": paths}

    def start(*words: str | Path) -> int:
        done = subprocess.run([sys.executable, *words], cwd=tmp_path, env=environment, capture_output=True, check=False)
        return done.returncode

    state = tmp_path / "killed" / CHECKPOINT
    assert start("-c", KILLED, state, *WORDS, "-o", "killed") == -signal.SIGKILL
    assert state.exists()
    assert not (tmp_path / "killed/config.json").exists()

    assert start("-m", "neurise", *WORDS, "-o", "killed", "--resume") == 0
    assert start("-m", "neurise", *WORDS, "-o", "straight") == 0
    assert not state.exists()
    killed, straight = (tmp_path / name / "model.safetensors" for name in ("killed", "straight"))
    assert killed.read_bytes() == straight.read_bytes()
