"""The same works where several processes share them: a pool, Dask, Slurm, torchrun."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import local_dask

from faults.grids import Experiment, Tune
from faults.injection import Control, Fault
from faults.training import Train
from faults.works import Run

SLURM = Path(__file__).parents[1] / "experiments/slurm.sh"
SLURM_PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch")


class DaskExperiment(Experiment):
    """Cells on a Dask cluster whose workers fail as the rest does."""

    def __init__(self) -> None:
        super().__init__("dask", size=2)

    @contextmanager
    def around(self, control: Path, library: Path) -> Iterator[None]:
        Control(control, control.parent / "nothing yet", Fault())  # workers look at it when they start
        folder = control.with_suffix(".dask")
        folder.mkdir()
        added = {"LD_PRELOAD": str(library), "NEURISE_FAULTS": str(control)}
        os.environ.update(added)
        try:
            with local_dask.cluster(folder, 2) as cluster:
                self.where = cluster.address
                yield
        finally:
            for name in added:
                os.environ.pop(name)


class SlurmExperiment(Experiment):
    """Cells as jobs of a Slurm."""

    def __init__(self) -> None:
        super().__init__("slurm:memory=500MB,walltime=00:10:00", workers=2, size=2)

    def run(self, folder: Path) -> Run:
        return partial(in_slurm, os.environ["SLURM_CONF"], super().run(folder))

    @contextmanager
    def around(self, control: Path, library: Path) -> Iterator[None]:
        try:
            yield
        finally:
            subprocess.run(["scancel", "--user", "root"], check=True)  # jobs of a client that was killed


class TuneTogether(Tune):
    """A search by two processes: each trial is what its parameters say, but who makes which is open."""

    executor = "process"
    more = ("--workers", "2")

    def result(self, folder: Path) -> Any:
        return super().result(folder)[-1]


class TorchrunTrain(Train):
    """Training by two processes that torchrun starts."""

    executor = "torchrun"

    def run(self, folder: Path) -> Run:
        return partial(torchrun, *self._words(folder))

    def again(self, folder: Path) -> Run:
        return partial(torchrun, *self._words(folder), "--resume")


def in_slurm(configuration: str, work: Run) -> None:
    """Do a piece of work where a Slurm is that was started later than the process this one is forked from."""
    os.environ["SLURM_CONF"] = configuration
    work()


def torchrun(*words: str) -> None:
    """Become torchrun with two processes of the command line."""
    options = ["--nproc-per-node", "2", "--standalone", "-m", "neurise"]
    os.execv(sys.executable, [sys.executable, "-m", "torch.distributed.run", *options, *words])


def why_no_slurm() -> str:
    """Say why there can be no Slurm here; empty where there can."""
    missing = [name for name in SLURM_PROGRAMS if shutil.which(name) is None]
    if missing:
        return f"Slurm is not installed: there is no {', '.join(missing)} (apt-get install slurm-wlm munge)"
    return "" if os.geteuid() == 0 else "Slurm's daemons are started by root, and this is not root"


@contextmanager
def slurm(folder: Path) -> Iterator[None]:
    """Start a Slurm of one node on this machine."""
    subprocess.run([SLURM, "start", folder], check=True)
    os.environ["SLURM_CONF"] = str(folder / "slurm.conf")
    try:
        yield
    finally:
        subprocess.run([SLURM, "stop", folder], check=True)
        os.environ.pop("SLURM_CONF")
