"""Cells as jobs of a real Slurm. `make test-cluster` runs this; elsewhere it is skipped."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import certificates
import pytest
from fake_experiments import Fake

from neurise.experiments import grid, store

SCRIPT = Path(__file__).parent / "slurm.sh"
PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch")

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not os.environ.get("NEURISE_TEST_CLUSTER"), reason="run by `make test-cluster` alone"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning"),
]


@pytest.fixture
def slurm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Start a Slurm of one node; tests run as jobs of it see the same modules as here."""
    missing = [name for name in PROGRAMS if shutil.which(name) is None]
    if missing:
        pytest.skip(f"Slurm is not installed: there is no {', '.join(missing)} (apt-get install slurm-wlm munge)")
    if os.geteuid() != 0:
        pytest.skip("Slurm's daemons are started by root, and this is not root")
    folder = tmp_path / "slurm"
    subprocess.run([SCRIPT, "start", folder], check=True)
    monkeypatch.setenv("SLURM_CONF", str(folder / "slurm.conf"))
    monkeypatch.setenv("PYTHONPATH", str(SCRIPT.parent.parent))
    try:
        yield folder
    finally:
        subprocess.run(["scancel", "--user", "root"], check=True)
        subprocess.run([SCRIPT, "stop", folder], check=True)


@pytest.mark.parametrize("encrypted", [False, True])
def test_cells_run_as_jobs_and_none_is_left_behind(slurm: Path, tmp_path: Path, encrypted: bool) -> None:
    results, notes = tmp_path / "r.jsonl", tmp_path / "notes"
    executor = f"slurm:memory=500MB,walltime=00:10:00,logs={tmp_path / 'logs'}"
    if encrypted:
        executor += f",{certificates.as_options(certificates.made(tmp_path / 'pem'))}"
    summary = grid.run(Fake(notes, trials=2, size=3, fail=2), "smoke", results, executor=executor, workers=2)
    assert (summary.cells, summary.done, summary.failed) == (12, 8, 4)
    ran = notes.read_text(encoding="utf-8").split()
    assert len(ran) == len(set(ran)) == 12
    finished = [row for row in store.read(results).rows if row["status"] == "done"]
    assert {row["metrics"]["threads"] for row in finished} == {1}
    assert all(row["times"]["job"] > 0 for row in finished)  # computed inside jobs
    assert sorted(row["metrics"]["square"] for row in finished) == sorted([0.0, 0.1, 1.0, 1.1] * 2)
    jobs = subprocess.run(["squeue", "-h", "-o", "%T"], check=True, capture_output=True, text=True)
    assert set(jobs.stdout.split()) <= {"COMPLETING"}
