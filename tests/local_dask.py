"""A real Dask scheduler and its workers, as processes of this machine."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

WAIT = 120.0
"""Seconds that the scheduler may take to start on a busy machine."""


class Cluster(NamedTuple):
    """Where the scheduler is, and its worker processes."""

    address: str
    workers: list[subprocess.Popen[bytes]]


@contextmanager
def cluster(folder: Path, workers: int, *security: str) -> Iterator[Cluster]:
    """Start a scheduler with so many workers of one thread each, and end them all; ``security`` are words for both."""
    place = folder / "scheduler.json"
    here = os.pathsep.join([str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")])
    environment = {**os.environ, "PYTHONPATH": here, "OMP_NUM_THREADS": "1"}

    def start(kind: str, *words: str) -> subprocess.Popen[bytes]:
        command = [
            sys.executable,
            "-m",
            f"distributed.cli.dask_{kind}",
            "--scheduler-file",
            str(place),
            "--no-dashboard",
        ]
        with (folder / f"{kind}.log").open("ab") as log:
            return subprocess.Popen([*command, *security, *words], env=environment, stdout=log, stderr=log, cwd=folder)

    processes = [start("scheduler", "--host", "127.0.0.1", "--port", "0")]
    try:
        options = ["--nthreads", "1", "--no-nanny", "--host", "127.0.0.1", "--local-directory", str(folder)]
        processes += [start("worker", *options) for _ in range(workers)]
        yield Cluster(_address(place), processes[1:])
    finally:
        for process in processes:
            process.kill()
            process.wait()


def _address(place: Path) -> str:
    deadline = time.monotonic() + WAIT
    while time.monotonic() < deadline:
        try:
            return (
                str(json.loads(place.read_text(encoding="utf-8"))["address"])
                .replace("tcp", "dask")
                .replace("tls", "dask")
            )
        except (OSError, ValueError):
            time.sleep(0.05)
    raise TimeoutError(f"no scheduler within {WAIT} s; see the logs in {place.parent}")
